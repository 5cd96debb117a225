"""PyTorch's optimizers: where they are hooked, what they hold, how gradients are scaled."""
