"""The `headstock` command: one file a command."""
