"""The command line and what it shows. Thin: a command's body calls the function a notebook would call."""
