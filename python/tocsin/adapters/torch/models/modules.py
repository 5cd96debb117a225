"""Inputs and outputs of a PyTorch model's modules, as far as a collection holds them.

A module gets hooks only when something of it is captured: patterns of the section ``capture`` match
its names, or a rule asked for a collection of activations. Who traces, scripts, exports or compiles a model finds all of
these hooks empty (tracing.py): there is no call of ours in what is made, and what happens inside of that is not seen.
What a compiled model is given and gives is.

A loop may apply parts of the model and never the model itself, as a LightningModule's training_step does
with ``self.net(x)``: then a step's pass begins with the first part.
"""

import sys
import warnings
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from tocsin.loop.sink import Sink
from tocsin.tensors.torch_names import is_wrapped, plain_name
from .copies import Calls, uncount
from .scripting import hide_from_scripting, show_to_scripting, taken_out
from .targets import Targets
from .tracing import looking, on_whose_behalf

MAX_CALLS = 8  # of one module in a step: a recurrent one has as many tensors as the sequence is long
FIRST, AGAIN, OTHER = "first", "again", "other"  # of the parts of a model that are applied by themselves
MAX_VALUES = 16  # in the inputs or outputs of one call


class Modules:
    """Of one model and, if it is given, its loss module. ``look()`` is called now and then."""

    def __init__(self, sink: Sink, model: Any, loss: Any, prefix: str) -> None:
        """Borrows the modules for the length of this call; the hooks keep what they need."""
        self._sink = sink
        self._prefix = prefix
        self._handles: List[Any] = []
        self._hooked: List["weakref.ref[Any]"] = []
        self._plan = -1
        self._step = ("", -1)  # that was captured last
        self._due = False
        self._tells = False  # what it is trained towards
        self._targets = Targets(sink, prefix)
        self._calls: Dict[str, int] = {}  # of the present forward pass
        self._inside = False  # a pass of the root goes on
        self._rooted: Set[str] = set()  # modes in which the root is applied
        self._parts = Parts()
        self._looked_at = looking()
        self._grad: Callable[[], bool] = sys.modules["torch"].is_grad_enabled
        self._said = False  # that layers of a compiled model are not seen
        self.look(model, loss)

    def look(self, model: Any, loss: Any) -> None:
        """Hooks what is wanted, if that may have changed."""
        plan = self._sink.plan_changes()
        if plan == self._plan and not taken_out(self._handles):
            return
        self._plan = plan
        self.detach()
        if not self._sink.publishes(False):  # of replicas one shows what all compute
            return
        found = list(self._wanted(model, loss))
        targets = model is not None and not _has_loss(model, loss) and self._targets.wanted()
        if not found and not targets:
            return
        hooked = [one for one in (model, *(one for one, *_ in found), *(_root_of(model).children() if model is not None else ()))
                  if one is not None]
        self._hooked = [weakref.ref(one) for one in hooked]
        uncount(model, hooked)
        hide_from_scripting(hooked)
        if model is not None:
            self._handles.append(model.register_forward_pre_hook(self._calls_of(self._begin)))
        if model is not None and (targets or any(not _is_loss(one) for one, *_ in found)):
            self._handles.append(model.register_forward_hook(self._calls_of(self._passed)))
            root = _root_of(model)
            name, inputs = next(((name, inputs) for one, name, inputs, _ in found if one is root), ("", []))
            for part in root.children():
                if not _is_loss(part):
                    hook = self._part_of(name, inputs, type(root).__name__)
                    self._handles.append(part.register_forward_pre_hook(self._calls_of(hook)))
                    self._handles.append(part.register_forward_hook(self._calls_of(self._part_passed)))
        self._tells = targets
        for module, *how in found:
            # What stands around a compiled root is called as it is.
            outer = model if is_compiled(model) and module is _root_of(model) else module
            self._handles.append(outer.register_forward_hook(self._calls_of(self._hook_of(module, *how))))
        self._say(model, found)

    def _calls_of(self, hook: Callable[..., None]) -> Calls:
        return _Untraced(hook, _compiling())

    def _say(self, model: Any, found: List[Any]) -> None:
        """Once: nobody else would know why a rule of layers has nothing to judge."""
        inner = [name for module, name, *_ in found if module is not _root_of(model) and not _is_loss(module)]
        if self._said or not is_compiled(model) or not inner:
            return
        self._said = True
        warnings.warn(f"tocsin: the model is compiled, so what its layers are given and give ({inner[0]}, …) is not seen; what the model "
                      "itself is given and gives, weights and gradients are", RuntimeWarning, stacklevel=2)

    def detach(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        show_to_scripting(one() for one in self._hooked)
        self._hooked = []
        self._sink.clock.applied = None

    def before_update(self) -> None:
        """In a step that is sampled: its gradients are there."""
        self._inside = False  # also when a pass has raised
        self._parts.over()
        self._targets.take()

    # ---- which

    def _wanted(self, model: Any, loss: Any) -> Iterator[Tuple[Any, str, List[str], str]]:
        """(module, its name, roles of its inputs, role of its outputs); without inputs or outputs that
        are not captured."""
        for module, name, inputs, output in _modules_of(model, loss, self._prefix):
            wanted = [self._sink.wants_tensor(f"{name}_input_{i}", role)
                      for i, role in enumerate(inputs)]
            if output and not self._sink.wants_tensor(f"{name}_output_0", output):
                output = ""
            if any(wanted) or output:
                yield module, name, inputs if any(wanted) else [], output

    # ---- when

    def _begin(self, module: Any, inputs: Any) -> None:
        """The root's forward pass begins: of the step that comes, not of the one that is held open."""
        with self._sink.guard("modules"):
            if self._looked_at(inputs) or (not module.training and on_whose_behalf()):
                return
            self._inside = True
            self._begin_pass()
            self._rooted.add(self._sink.clock.mode)

    def _begin_pass(self, applied: bool = True) -> None:
        """``applied``: it is the model, or a part in the model's own state, and so says what state that is in."""
        clock = self._sink.clock
        self._sink.catch_up()
        clock.begin_forward()
        clock.applied = clock.applied or applied
        self._calls.clear()
        # Of several passes in a step (micro-batches) the first is captured that gradients can come from: with a replay memory
        # the same model acts before it is trained.
        self._due = self._sink.active and (clock.mode != "train" or self._grad()) and clock.position() != self._step \
            and self._sink.wants()
        if self._due and on_whose_behalf():
            self._due = False
            self._sink.publish_lent(None, 0)
        if self._due:
            self._step = clock.position()
            self._targets.begin()
            self._sink.publish_lent(None, 0)  # until the first module runs we do nothing

    def _passed(self, module: Any, given: Any, result: Any) -> None:
        """The root's forward pass has ended: any pass of a step that is sampled."""
        del module
        if self._looked_at(given):
            return
        self._inside = False
        self._told(result)

    def _told(self, result: Any) -> None:
        if self._tells and self._sink.active and self._step == self._sink.clock.position() and not on_whose_behalf():
            with self._sink.guard("targets"):
                self._targets.passed(_tensors(result))

    # ---- parts that are applied by themselves

    def _alone(self, part: Any, given: Any) -> bool:
        """A part, or a loss, is applied by itself; the first of a step begins its pass."""
        if self._inside or self._sink.clock.mode in self._rooted or self._looked_at(given):
            return False
        if not part.training and on_whose_behalf():
            return False
        self._sink.catch_up()
        self._sink.clock.begin_forward()
        if self._sink.clock.position() != self._step:
            model = self._sink.clock.model()
            self._begin_pass(not _is_loss(part) and part.training == getattr(model, "training", None))
        return True

    def _part_of(self, name: str, inputs: List[str], op_type: str) -> Callable[..., None]:
        """What the first part of a step is given is the model's input. When it is applied again,
        another pass begins."""

        def hook(module: Any, given: Any) -> None:
            if self._inside:
                return
            with self._sink.guard("modules"):
                if not self._alone(module, given):
                    return
                place = self._parts.begins(module, self._step)
                if place is AGAIN:
                    self._due = False
                elif place is FIRST and self._due and inputs:
                    for i, value in enumerate(_tensors(given)):
                        role = inputs[min(i, len(inputs) - 1)]
                        self._publish(f"{name}_input_{i}", value, role, op_type)

        return hook

    def _part_passed(self, module: Any, given: Any, result: Any) -> None:
        """What the last one gives is the model's output."""
        if not self._inside and self._sink.clock.mode not in self._rooted and not self._looked_at(given) \
                and self._parts.is_last(module):
            self._told(result)

    def _hook_of(self, module: Any, name: str, inputs: List[str],
                 output: str) -> Callable[..., None]:
        op_type = type(module).__name__

        def hook(module: Any, given: Any, result: Any) -> None:
            if not self._inside:
                with self._sink.guard("modules"):
                    self._alone(module, given)
            if not self._due or self._looked_at(given) or on_whose_behalf():
                return
            with self._sink.guard("modules"):
                call = self._calls.get(name, 0)
                self._calls[name] = call + 1
                if call >= MAX_CALLS:
                    return
                if inputs:
                    for i, value in enumerate(_tensors(given)):
                        self._publish(f"{name}_input_{call + i}", value,
                                      inputs[min(i, len(inputs) - 1)], op_type)
                if output:
                    for i, value in enumerate(_tensors(result)):
                        self._publish(f"{name}_output_{call + i}", value, output, op_type)

        return hook

    def _publish(self, name: str, value: Any, role: str, op_type: str) -> None:
        self._sink.publish_tensor(name, value, None, role=role, op_type=op_type)


class Parts:
    """Which of a model's parts are applied first and last in a step."""

    def __init__(self) -> None:
        self._step = ("", -1)  # whose first part has begun
        self._first = self._latest = self._last = 0  # ids

    def begins(self, module: Any, step: Tuple[str, int]) -> str:
        """FIRST of this step, the first one AGAIN, or OTHER."""
        if self._step != step:
            self._step, self._first = step, id(module)
            return FIRST
        return AGAIN if id(module) == self._first else OTHER

    def is_last(self, module: Any) -> bool:
        """As it was in the sampled step before."""
        self._latest = id(module)
        return self._latest == self._last

    def over(self) -> None:
        """The sampled step's passes have ended."""
        self._last = self._latest


class _Untraced(Calls):
    """Calls ``function`` where no compiler traces: there it is constant that nothing is to be done."""

    __slots__ = ("_asked",)

    def __init__(self, function: Callable[..., None], compiling: Callable[[], bool]) -> None:
        super().__init__(function)
        self._asked = compiling  # constant there; all else is asked by who has something to do

    def __call__(self, *given: Any) -> None:
        if self._asked():
            return
        self._function(*given)


def _compiling() -> Callable[[], bool]:
    """Whether a compiler traces; torch 1 has none: ``bool()`` is False, and quicker than a function of Python."""
    return getattr(getattr(sys.modules.get("torch"), "compiler", None), "is_compiling", bool)


def is_compiled(model: Any) -> bool:
    """By ``torch.compile(model)`` or ``model.compile()``."""
    return hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None


def _root_of(model: Any) -> Any:
    """Without what wraps it."""
    for inner in ("_orig_mod", "module"):
        model = getattr(model, inner, model)
    return model


def _modules_of(model: Any, loss: Any, prefix: str) -> Iterator[Tuple[Any, str, List[str], str]]:
    """(module, name, roles of its inputs, role of its outputs) of all there are. What a loss module
    gives is logged (``watch(loss=…)``), and no tensor."""
    if model is not None:
        wrapped = is_wrapped(model)
        root = _root_of(model)
        yield root, prefix + type(root).__name__, ["input"], "output"
        for path, module in model.named_modules():
            name = plain_name(path, wrapped)
            if not name or module is root:
                continue
            if _is_loss(module):  # a LightningModule's attribute
                yield module, prefix + name, ["prediction", "label"], ""
            else:
                yield module, prefix + name, ["activation_in"], "activation_out"
    if _is_loss(loss):
        yield loss, prefix + type(loss).__name__, ["prediction", "label"], ""


def path_of(module: Any, model: Any, loss: Any, prefix: str) -> Optional[str]:
    """The name of one of them."""
    return next((name for one, name, _, _ in _modules_of(model, loss, prefix) if one is module), None)


def _is_loss(module: Any) -> bool:
    return hasattr(module, "register_forward_hook") and type(module).__name__.endswith("Loss") \
        and not list(module.children())


def _has_loss(model: Any, loss: Any) -> bool:
    """Its inputs are told as they are."""
    return _is_loss(loss) or any(_is_loss(module) for module in model.modules())


def _tensors(values: Any) -> List[Any]:
    """The tensors of a module's inputs or outputs, in order; of nested ones too."""
    out: List[Any] = []
    pending = [values]
    while pending and len(out) < MAX_VALUES:
        value = pending.pop(0)
        if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
            if not getattr(value, "is_nested", False):  # of the fast path of an encoder: it has no shape
                out.append(value)
        elif isinstance(value, dict):
            pending[:0] = list(value.values())
        elif isinstance(value, (list, tuple)):
            pending[:0] = list(value)
    return out

