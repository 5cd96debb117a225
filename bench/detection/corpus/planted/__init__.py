"""The kinds of faults of a published benchmark (TheDeepChecker), written by us in PyTorch on three programs of our own."""
