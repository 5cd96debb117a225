"""Whether updates of PyTorch move what they should, and survive their precision."""
