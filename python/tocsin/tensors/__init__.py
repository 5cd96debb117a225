"""Tensors in memory: descriptors for the library, and statistics and copies on a device that nobody waits for."""
