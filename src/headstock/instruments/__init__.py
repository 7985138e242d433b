"""What is measured of a model and inside it, one file an instrument; each gives plain values and draws nothing."""
