"""The fourth set."""
