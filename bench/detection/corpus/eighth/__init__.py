"""The eighth set."""
