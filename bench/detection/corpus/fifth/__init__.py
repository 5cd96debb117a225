"""The fifth set."""
