"""Graphs, pairs and recommendations."""
