"""Drawing and telling: figures, tables and reports of what the store holds. Numbers first, then the picture."""
