"""Sounds and series."""
