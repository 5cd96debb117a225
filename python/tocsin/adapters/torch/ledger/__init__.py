"""The ledger of PyTorch jobs (docs/ledger.md): loss calls, batches, and what a constant answer would cost."""
