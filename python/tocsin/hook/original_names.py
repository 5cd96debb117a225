"""Methods of the hook under the names that SageMaker Debugger's hooks have, for scripts that call them."""

from typing import Any, Dict, List, Optional

from tocsin.process.contain import contained
from tocsin.settings.collections import Collection, Collections
from tocsin.settings.job_file import capture_of_json_file
from .opening import opened

# What a hook captures to which nobody said anything.
DEFAULT_COLLECTIONS = ("weights", "biases", "gradients", "losses")


class OriginalNames:
    """Of a :class:`tocsin.Hook`; each is a word for one of its own methods."""

    collections: Collections

    @classmethod
    def create_from_json_file(cls, json_file_path: Optional[str] = None) -> Optional[Any]:
        """See :func:`tocsin.smdebug.create_from_json_file`."""
        capture = capture_of_json_file(json_file_path)
        return None if capture is None else opened(cls, {"capture": capture})

    # ---- collections

    def get_collections(self) -> Dict[str, Collection]:
        return dict(self.collections)

    def get_collection(self, name: str, create: bool = True) -> Optional[Collection]:
        """``create``: makes one without patterns, which :meth:`Collection.include` gives some."""
        if name not in self.collections:
            return self.collections.add(name) if create else None
        return self.collections[name]

    def add_collection(self, collection: Any) -> Optional[Collection]:
        """A ``CollectionConfig``, or a collection of this hook."""
        return collection if isinstance(collection, Collection) else self.collections.add(collection)

    def has_default_hook_configuration(self, default_saved_collections: Any = DEFAULT_COLLECTIONS) -> bool:
        """Whether what is captured is what a hook captures by itself."""
        return set(self.collections) == set(default_saved_collections)

    # ---- values

    def save_scalar(self, name: str, value: Any, sm_metric: bool = False, timestamp: Any = None) -> None:
        """``log()`` of one value. ``sm_metric`` and ``timestamp`` are accepted and change nothing: every scalar is published to
        ``telemetry`` with the time of the call, and none goes to CloudWatch."""
        del sm_metric, timestamp
        self.log({name: value})  # type: ignore[attr-defined]

    @contained()
    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """What a function gives (``F.mse_loss``): one element is logged, of more the statistics are saved as
        ``<name>_output_0``. Older than :meth:`save_tensor`."""
        size = getattr(tensor_value, "numel", getattr(tensor_value, "size", 1))
        if (size() if callable(size) else size) == 1:
            self.log({tensor_name: tensor_value})  # type: ignore[attr-defined]
        else:
            self.save_tensor(tensor_name + "_output_0", tensor_value, None)  # type: ignore[attr-defined]

    def should_save_step(self, collection: Optional[str] = None) -> bool:
        """Whether a collection (None: any) is captured at the present step."""
        return bool(self.enabled and self.sink.wants(collection))  # type: ignore[attr-defined]

    @contained(False)
    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Whether the collection is captured at the present step, and holds a tensor of this name."""
        if collection_name not in self.collections or not self.should_save_step(collection_name):
            return False
        patterns = self.collections[collection_name].include_regex
        return not patterns or bool(self.sink.wants_tensor(tensor_name))  # type: ignore[attr-defined]

    # ---- times

    @contained()
    def record_trace_events(self, timestamp: float, training_phase: str = "", op_name: str = "", phase: str = "X",
                            duration: float = 1, **kwargs: Any) -> None:
        """A span of ``duration`` seconds (``phase`` other than X: an instant) that began at ``timestamp``, seconds since
        1970: ``training_phase`` is its name, ``op_name`` and what else is given its arguments."""
        args = {**({"op_name": op_name} if training_phase and op_name else {}), **kwargs}
        nanoseconds = round(duration * 1e9) if phase == "X" else -1
        self._span(training_phase or op_name, round(timestamp * 1e9), nanoseconds, args)  # type: ignore[attr-defined]

    def get_profiler_data(self, name: Optional[str] = None, step: Optional[int] = None) -> List[Dict[str, Any]]:
        """Times of steps, phases and spans that this run has written to its directory so far: see
        :meth:`tocsin.reading.Tensors.times`. Empty when it writes to a broker."""
        if self.enabled:  # type: ignore[attr-defined]
            self.flush()  # type: ignore[attr-defined]
        return self._timed(name, step) or []

    @contained([], when_closed=True)
    def _timed(self, name: Optional[str], step: Optional[int]) -> List[Dict[str, Any]]:
        read = self._reading()  # type: ignore[attr-defined]
        return [] if read is None else read.times(name, step, self.run)  # type: ignore[attr-defined]

    # ---- what is watched

    @contained()
    def register_module(self, module: Any) -> None:
        """A PyTorch model is watched, with the optimizer that holds its parameters: one that is there, or the first
        that updates them. A step is one update."""
        from tocsin.adapters.register import register

        register(self, module)

    @contained()
    def register_loss(self, loss_module: Any) -> None:
        """The output of a PyTorch loss module, or of a Gluon loss block, is logged as ``loss``."""
        from tocsin.adapters.attach import attach

        if hasattr(loss_module, "collect_params"):
            self.register_block(loss_module)
        else:
            attach(self.sink, None, None, loss_module)  # type: ignore[attr-defined]

    @contained()
    def register_block(self, block: Any) -> None:
        """A Gluon block (MXNet) is watched: its parameters and their gradients, read when it is applied again under
        ``autograd.record()``, which is a step. A loss block: its mean is logged as ``loss``."""
        from tocsin.adapters.gluon import register

        register(self, block)

    def wrap_tape(self, tape: Any) -> Any:
        """A ``tf.GradientTape`` of an eager loop: ``gradient()`` gives a step its loss, gradients and weights. In a
        ``tf.function`` there are no values to read: :func:`tocsin.keras.watch` has a way."""
        if self.enabled:  # type: ignore[attr-defined]
            from tocsin.adapters.tape import wrap

            wrap(self, tape)
        return tape
