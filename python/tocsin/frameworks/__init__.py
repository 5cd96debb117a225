"""Callbacks of trainers, and helpers of loops: one module per framework. Public are the modules of the same name in ``tocsin``."""
