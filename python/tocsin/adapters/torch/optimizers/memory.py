"""What a PyTorch optimizer remembers of each parameter (``exp_avg``, ``momentum_buffer``, …): the collection ``optimizer_variables``."""

from typing import Any, Callable, List, Tuple

from tocsin.loop.sink import Sink
from tocsin.tensors.torch_names import local

ROLE = "optimizer"


def name_of(parameter: str, slot: str) -> str:
    """``optimizer/conv1.weight/exp_avg``."""
    return f"optimizer/{parameter}/{slot}"


class OptimizerMemory:
    """Publishes it as it stands before an update, so that the first update of a run has none. Nothing is looked at unless some
    collection holds it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._plan = -1
        self._wanted = False

    def sample(self, optimizer: Any, parameters: Callable[[], List[Tuple[str, Any]]]) -> None:
        """Of the present step, which is due. ``parameters()``: (name, parameter) of those that it updates."""
        plan = self._sink.plan_changes()
        if plan != self._plan:
            self._plan = plan
            # A pattern may want some of them: then the names of all are looked at, which exist after the first update.
            self._wanted = self._sink.wants_tensor(name_of("", ""), ROLE) or any(
                self._sink.wants_tensor(name_of(name, slot), ROLE)
                for name, parameter in parameters() for slot, _ in _slots(optimizer, parameter))
            if not getattr(optimizer, "state", None):
                self._plan = -1  # there are no names yet
        if not self._wanted:
            return
        for name, parameter in parameters():
            for slot, value in _slots(optimizer, parameter):
                if self._sink.wants_tensor(name_of(name, slot), ROLE):
                    self._sink.publish_tensor(name_of(name, slot), local(value.detach()), None, role=ROLE)


def _slots(optimizer: Any, parameter: Any) -> List[Tuple[str, Any]]:
    """Tensors only: a count of steps, and what a closure's optimizer keeps in lists, is none."""
    state = getattr(optimizer, "state", {}).get(parameter, None)
    if not isinstance(state, dict):
        return []
    return [(slot, value) for slot, value in state.items()
            if isinstance(slot, str) and hasattr(value, "data_ptr") and value.dim() > 0]
