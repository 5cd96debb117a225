"""What `tocsin run` attaches to PyTorch scripts (``_attach.py`` says when)."""
