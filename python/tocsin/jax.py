"""JAX: statistics that the compiled step computes and returns (docs/frameworks/jax.md)."""

from .frameworks.jax import COLUMNS, Moments, Training, ledger, recorded, statistics, watch

__all__ = ["COLUMNS", "Moments", "Training", "ledger", "recorded", "statistics", "watch"]
