"""Trainings in frameworks, and without any."""
