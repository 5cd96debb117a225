"""The ledger of a PyTorch job: what its loss calls say of the task (docs/ledger.md), as scalars ``ledger/<call>/<field>``.

One per hook. It is told of each call of a loss function (functions.py), measures those that its budget
allows on the spot, under no_grad, and publishes sums. No tensor of the call is kept, nothing random is drawn, and on a
GPU nothing is waited for: the sums follow when the device is done.
"""

import sys
import threading
from math import isfinite
from time import perf_counter, thread_time
from typing import Any, Callable, Dict, List, Optional, Tuple

from tocsin.adapters.torch.models.tracing import looking, on_whose_behalf
from tocsin.loop.sink import Sink
from tocsin.tensors.torch_staging import Arrival, capturing
from .budget import Budget
from .by_class import Classes
from .calls import Arguments, Measured, measure, measure_embedding
from .embeddings import Embeddings, embedding_of
from .functions import tell, tell_no_more
from .given import Given
from .host import numpy_of
from .models import Models
from .same import add_same
from .shapes import Shapes
from .stated import stated
from .worlds import Worlds

MAX_CALLS = 8  # different ones of a run: functions, and shapes of outputs
MAX_MEASURED = 64  # of one step
_EVALUATIONS = ("eval", "predict")


class Ledger:
    """An adapter of its own: it needs neither a model nor an optimizer."""

    def __init__(self, sink: Sink) -> None:
        torch = sys.modules["torch"]
        self.skip = 0  # calls of training that come before the next one which may be measured
        self._sink = sink
        self._budget, self._evaluation = Budget(), Budget()
        self._embeddings = Embeddings()
        self._calls: Dict[Tuple[str, Any], Optional["_Call"]] = {}
        self._counts: Dict[str, int] = {}  # by function
        self._left_out = 0  # calls of the ninth kind and on
        self._not_finite = 0
        self._step = -1  # of training, that is measured
        self._in_step = self._per_step = 0  # calls
        self._missed = 0  # calls that skip has passed over
        self._busy = False
        self._thread = threading.get_ident()
        self._looked_at, self._apart = looking(), torch._C.DisableTorchFunction
        self._strided = torch.strided
        self._plain = (torch.Tensor, torch.nn.Parameter)
        self._no_grad = torch.no_grad
        self._grad, self._dispatched = torch.is_grad_enabled, getattr(torch._C, "_len_torch_dispatch_stack", _none)
        self._transformed = getattr(torch._C, "_are_functorch_transforms_active", _none)
        self.given = Given(sink, self._looked_at, self._passes_over)
        self._inputs: Any = None
        if numpy_of(torch.zeros(1)) is not None:
            from .inputs import Inputs

            self._inputs = Inputs(sink, self.given)
        self._worlds, self._shapes = Worlds(sink, self.given), Shapes(sink)
        self._models = Models(sink, self._asks, lambda: self._budget.calls, self._found, self._looked_at, self._passes_over)
        self._classes = Classes(sink, lambda: [one for one in self._calls.values() if one is not None], lambda: sink.guard("ledger"))
        sink.attach(self)
        sink.ledger = self
        tell(self)

    def follow(self, model: Any) -> Callable[[], None]:
        """``model`` is watched: what it is given and gives is looked at where that tells something. Until the function
        that is given back is called."""
        passes = self._models.follow(model)
        given_no_more = self.given.follow(model, passes)
        self._worlds.follow(model)

        def undo() -> None:
            passes.end()
            given_no_more()

        return undo

    def detach(self) -> None:
        tell_no_more(self)
        with self._sink.guard("ledger"):
            if self._inputs is not None:
                self._inputs.over(self._evaluation.calls)
        self._models.detach()
        self.given.detach()
        self._classes.end()


        self._worlds.detach()
        self._calls.clear()

    def watches(self, model: Any, optimizer: Any) -> bool:
        """It is nobody's."""
        return False

    def counts(self) -> Dict[str, Any]:
        """For ``hook.stats()``."""
        out = self._budget.as_dict()
        out["calls"] += self._missed - self.skip
        out["evaluation"] = self._evaluation.as_dict()
        if self._inputs is not None:
            out["inputs"] = self._inputs.counts()
        if self._embeddings.measured:
            out["embeddings"] = {"measured": self._embeddings.measured, "seconds": self._embeddings.seconds}
        for name, count in (("left_out", self._left_out), ("not_finite", self._not_finite)):
            if count:
                out[name] = count
        return out

    # ---- told

    def wakes(self) -> None:
        """The next call of a loss function may be measured."""
        self._models.wake(max(self._per_step, 1))

    def called(self, name: str, args: Any, kwargs: Any) -> None:
        """A loss function was called and has returned."""
        if self._busy or not self._sink.active or threading.get_ident() != self._thread:
            return
        self._busy, began = True, thread_time()
        try:
            with self._apart():  # from modes of torch functions
                self._look(Arguments(name, args, kwargs), began)
        except Exception as error:  # noqa: BLE001
            self._sink.failed("ledger", error)
        finally:
            self._busy = False

    def embedded(self, name: str, args: Any, kwargs: Any) -> None:
        """A function was given embeddings, perhaps, and has returned. It begins no step and is none of the calls of losses."""
        if self._busy or not self._sink.active or self._sink.clock.mode != "train" or threading.get_ident() != self._thread:
            return
        self._busy, began = True, thread_time()
        try:
            with self._apart():
                given = embedding_of(name, args, kwargs)
                call = self._embeddings.call(name, self._sink.clock.position()[1]) if given is not None and self._measurable(given) else None
                if given is not None and call is not None:
                    self._publish(call, measure_embedding(given), self._sink.clock.position())
                    self._embeddings.took(began)
        except Exception as error:  # noqa: BLE001
            self._sink.failed("ledger", error)
        finally:
            self._busy = False

    def stated(self, outputs: Any, targets: Any, loss: Any) -> None:
        """The script says what its outputs are compared with (``hook.targets()``)."""
        self._looking(lambda: stated(outputs, targets, loss))

    def _looking(self, given: Callable[[], Any]) -> None:
        began = thread_time()
        self._busy = True  # what the loss calls is not told, too
        try:
            with self._apart():
                self._look(given(), began)
        finally:
            self._busy = False

    def _look(self, given: Any, began: float) -> None:
        output = given.output
        clock = self._sink.clock
        model = clock.model()
        if model is not None and not (model.training and clock.mode == "train"):
            clock.follow()
        if clock.mode in _EVALUATIONS:
            budget, learns = self._evaluation, False
            budget.calls += 1
            if self._inputs is not None:
                self._inputs.passes(self._budget.calls + self._missed - self.skip, budget.calls)
            if budget.calls % budget.every:
                return
            step = budget.calls
        elif clock.mode == "train" and (given.learns or (self._grad() and output.requires_grad)):
            if clock.held() and self._models.rooted and any(getattr(one, "times_passes", bool)() for one in self._sink.adapters()):
                return  # a pass of the watched model would have ended the step before: it is another's loss
            clock.begin_forward()
            budget, learns = self._budget, True
            budget.calls += 1
            step = clock.position()[1]
            if not self._due(step):
                return
        else:
            return
        if not self._measurable(given):
            return
        if not learns:
            budget.begin(step, perf_counter())
        elif not self._begins(step):
            return
        else:
            self._shapes.look(given)
        call = self._call_of(given)
        if call is not None:
            self._classes.before(learns)
            measured = measure(given, call.state, learns)
            add_same(measured, given, self._models.input())
            at = clock.position() if learns else None
            self._publish(call, measured, at)
            self._look_at_inputs(call, given, learns)
            self._classes.after(call, at)


            self._worlds.look(call.name, given, step if learns else None, budget.calls)
        budget.add(thread_time() - began)

    def _look_at_inputs(self, call: "_Call", given: Any, learns: bool) -> None:
        if self._inputs is not None:
            with self._no_grad():
                if learns:
                    self._inputs.trained(call, given, self._evaluation.calls)
                else:
                    self._inputs.evaluated(call, given)

    def _begins(self, step: int) -> bool:
        """A call of a step of training that is measured; False: it is one of too many."""
        if step != self._step:
            self._per_step, self._in_step, self._step = max(self._in_step, 1), 0, step
            self._budget.begin(step, perf_counter())
        self._in_step += 1
        return self._in_step <= MAX_MEASURED

    def _passes_over(self) -> int:
        """How many of the next loss calls are surely passed over."""
        return self.skip if self.skip and self._grad() else 0

    def _asks(self) -> bool:
        """Whether a pass of the model is one whose gradient is asked for what it tells."""
        clock = self._sink.clock
        every = self._budget.every
        return clock.mode == "train" and threading.get_ident() == self._thread and (
            every == 1 or clock.position()[1] % every == 0)

    def _found(self, given: Arguments, now: bool) -> None:
        """What the gradient of a model's output has told. ``now``: the step goes on; else its numbers come in order."""
        began, clock = thread_time(), self._sink.clock
        call = self._call_of(given) if self._begins(clock.position()[1]) else None
        if call is not None:
            self._classes.before(True)
            measured = measure(given, call.state, True)
            if now:
                self._publish(call, measured, clock.position())
            else:
                self._told(call, measured, clock.position(), False)
            self._look_at_inputs(call, given, True)
            self._classes.after(call, clock.position())
        self._budget.add(thread_time() - began)

    def _due(self, step: int) -> bool:
        every = self._budget.every
        if every == 1 or step % every == 0 or step == self._step:
            return True
        self.skip = (every - step % every - 1) * self._per_step
        self._missed += self.skip
        return False

    def _measurable(self, given: Any) -> bool:
        """Ordinary tensors of an ordinary call: nobody traces, transforms, captures or counts."""
        tensors = given.tensors()
        if any(type(one) not in self._plain for one in tensors) or self._looked_at(tuple(tensors)) \
                or self._dispatched() or self._transformed():
            return False
        if any(one.layout is not self._strided or one.device != given.output.device for one in tensors if one.dim() > 0):
            return False
        return not (given.output.is_cuda and capturing()) and given.output.device.type != "meta" and not on_whose_behalf()

    def _call_of(self, given: Any) -> Optional["_Call"]:
        key = given.name, given.kind()
        if key not in self._calls:
            if sum(one is not None for one in self._calls.values()) >= MAX_CALLS or len(self._calls) >= 8 * MAX_CALLS:
                self._left_out += 1
                return None
            count = self._counts[given.name] = self._counts.get(given.name, 0) + 1
            self._calls[key] = _Call(given.name if count == 1 else f"{given.name}.{count}")
        return self._calls[key]

    # ---- published

    def _publish(self, call: Any, measured: Measured, step: Any) -> None:
        """``step``: of training; None: an evaluation."""
        queue, numbers, event = self._sink.queue, measured.numbers, None
        if getattr(numbers, "is_cuda", False):
            torch = sys.modules["torch"]
            kept = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            kept.copy_(numbers, non_blocking=True)
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(numbers.device))
            measured, event = measured._replace(numbers=kept), Arrival(event)
        if event is None and not queue.waiting:
            self._told(call, measured, step, self._sink.clock.nothing_due())
        else:
            queue.put(self._told, call, measured, step, False, after=event)

    def _told(self, call: Any, measured: Measured, step: Any, quiet: bool) -> None:
        values = dict(measured.known)
        if measured.numbers is not None:
            values.update(zip(measured.fields, measured.numbers.tolist()))
        for name, value in call.rows(values, step):
            identity = call.ids.get(name)
            if identity is None:
                identity = call.ids[name] = self._sink.scalar(f"ledger/{call.name}/{name}", "ledger")
            self._sink.publish_known(identity, value, quiet)
        self._not_finite += call.take_not_finite()


class _Call:
    """One loss of the job: its name, what is known of its targets so far, and what was told of the present step."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids: Dict[str, int] = {}
        self.state: Dict[str, Any] = {}
        self._without: Any = None  # the step in which a call had no past
        self._ceiling: Any = None  # the step in which it was told
        self._not_finite = 0

    def take_not_finite(self) -> int:
        count, self._not_finite = self._not_finite, 0
        return count

    def rows(self, values: Dict[str, float], step: Any) -> List[Tuple[str, float]]:
        """(field, value) of one call that go out."""
        if not values.get("samples"):
            return [("no_targets", 1.0), ("calls", 1.0)]
        if not isfinite(sum(values.values())):  # of one of them
            self._not_finite += 1
            return []
        if not values.pop("past"):
            if step is not None:
                self._without = step
            values.pop("trivial", None)
        elif step is not None and step == self._without:
            values.pop("trivial", None)
        if not values.pop("_ceiling", 0.0) or (step is not None and step == self._ceiling):
            values.pop("ceiling", None)
        elif "ceiling" in values:
            self._ceiling = step
        if values["samples"] < 2:
            for name in ("one_target", "output_spread", "target_spread"):
                values.pop(name, None)
        values["calls"] = 1.0
        return [(name, value) for name, value in values.items() if value or name not in _ONLY_IF]


_ONLY_IF = ("one_target",)  # told only where it is not 0


def _none() -> int:
    return 0
