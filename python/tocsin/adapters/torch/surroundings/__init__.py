"""What surrounds a PyTorch model: data loaders, schedules, checkpoints, and what an optimizer has lost."""
