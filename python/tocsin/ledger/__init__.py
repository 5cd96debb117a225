"""The arithmetic of the ledger (docs/ledger.md), in NumPy or any other table of operations: of loss calls, batches and boosters."""
