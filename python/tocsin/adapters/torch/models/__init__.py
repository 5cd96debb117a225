"""The modules of a PyTorch model: what they are given and give, their times, and who looks at them."""
