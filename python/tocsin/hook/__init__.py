"""The hook object: what a training script talks to."""

from .hook import Capture, EXIT_STOPPED, Hook, Rules, Stop

__all__ = ["Capture", "EXIT_STOPPED", "Hook", "Rules", "Stop"]
