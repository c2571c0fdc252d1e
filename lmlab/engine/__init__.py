"""Training: from specs to records. A run is a row of a stack; nothing above this package sees the stack."""
