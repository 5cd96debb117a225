"""Models that make something."""
