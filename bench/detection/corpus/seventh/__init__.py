"""The seventh set."""
