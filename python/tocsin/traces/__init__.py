"""Traces of PyTorch's profiler: ordered, sent, fetched and merged."""
