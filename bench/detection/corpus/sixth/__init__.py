"""The sixth set."""
