"""What became of the tensors that lie on devices: counted for ``hook.stats()``, the losses said once."""

from typing import Any, Dict

from tocsin.process.facts import say

# Why something was left out, as it is said on stderr the first time.
_WORDS = {
    "device": "their device has no numbers of binary64, or no memory",
    "graph_capture": "a CUDA graph was being captured (call hook.step() after each replay)",
    "in_flight": "the device is more than 16 MiB of statistics behind",
    "layout": "their layout is neither strided nor coordinates",
    "no_memory": "they have no memory of their own (a wrapper, or storage that was given back)",
    "unreadable": "they could not be looked at",
    "view_too_large": "views with gaps of more than 64 MiB are not copied",
}


class DeviceCounts:
    """Of one hook."""

    def __init__(self) -> None:
        self.tensors = 0   # measured
        self.batches = 0   # read together
        self.launches = 0  # of those that were measured by Triton
        self.seconds = 0.0  # on devices, where they tell
        self.kernels: Dict[str, str] = {}  # device -> "triton", or "torch (why)"
        self.skipped: Dict[str, int] = {}
        self.waits: Dict[str, int] = {}  # for a device, by reason

    def skip(self, reason: str, count: int = 1) -> None:
        """``count`` tensors or scalars are not measured."""
        if reason not in self.skipped:
            say(f"values on a device are left out: {_WORDS.get(reason, reason)} (counted in stats()['device'])")
        self.skipped[reason] = self.skipped.get(reason, 0) + count

    def wait(self, reason: str) -> None:
        """The training thread waits for a device."""
        self.waits[reason] = self.waits.get(reason, 0) + 1

    def as_dict(self) -> Dict[str, Any]:
        """Empty when no device had anything to do with the hook."""
        if not (self.tensors or self.skipped or self.waits or self.kernels):
            return {}
        return {"kernels": dict(self.kernels), "tensors_total": self.tensors, "batches_total": self.batches,
                "launches_total": self.launches, "seconds_total": self.seconds,
                "skipped_total": dict(self.skipped), "waits_total": dict(self.waits)}
