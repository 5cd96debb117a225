"""Raw tensors read back: from the topic, the directory or the store that holds them (docs/raw-tensors.md)."""

from .reading.raw import HOW, NoRawTensor, RawTensors

__all__ = ["HOW", "NoRawTensor", "RawTensors"]
