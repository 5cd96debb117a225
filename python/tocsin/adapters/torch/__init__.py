"""PyTorch: :class:`~tocsin.adapters.torch.adapter.TorchAdapter` watches a model and its optimizer."""
