"""The ninth set."""
