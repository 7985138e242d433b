"""What a transformer is: its configuration, its parts, what it costs."""
