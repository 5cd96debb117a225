"""Gymnasium, the older Gym and Stable-Baselines3: environments and agents (docs/frameworks/reinforcement.md)."""

from .frameworks.gymnasium import stable_baselines3, watched

__all__ = ["stable_baselines3", "watched"]
