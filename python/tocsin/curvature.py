"""Second-order diagnostics of one batch, where the script asks for them (docs/curvature.md)."""

from .frameworks.curvature import Closure, Curvature

__all__ = ["Closure", "Curvature"]
