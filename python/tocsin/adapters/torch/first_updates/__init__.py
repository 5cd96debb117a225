"""What the first updates of a PyTorch model show: the order of calls, and settings that are hardly ever meant."""
