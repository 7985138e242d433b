"""The figures of a chapter that derives attention from an average, one study a file."""
