"""What a script may say of its task."""

from typing import Any, Callable, Optional, Union

from tocsin.process.contain import contained


class TellsTask:
    """Of a :class:`tocsin.Hook`."""

    sink: Any

    @contained()
    def targets(self, outputs: Any, targets: Any, *, loss: Optional[Union[str, Callable[[Any, Any], Any]]] = None, inputs: Any = None) -> None:
        """Tell the ledger what the outputs of this step are compared with (docs/ledger.md).

        Use it when your loss calls no function of ``torch.nn.functional``. Call it once per forward pass, in training and
        in evaluation. No element leaves the process.

        ``outputs``, ``targets``: PyTorch tensors or NumPy arrays with one row per sample, ``(n, …)``.
        ``loss``: the name of such a function (``"cross_entropy"``, ``"mse_loss"``), or a function of (outputs, targets)
        that returns one number per sample, or several that are averaged. It is called once more with exchanged targets,
        without gradients. Default: ``cross_entropy`` for whole numbers, else ``mse_loss``.
        ``inputs``: with arrays, the model's inputs: an array, or a list or dictionary of arrays, with one row per sample.
        A watched PyTorch model reports its inputs itself.
        """
        if not hasattr(outputs, "requires_grad") and self.sink.wants_ledger:
            if self.sink.stated is None:
                from tocsin.ledger.loop_ledger import Stated
                self.sink.stated = Stated(self.sink)
            self.sink.stated.tell(outputs, targets, loss, inputs)
            return
        ledger = self.sink.ledger
        if ledger is not None:
            ledger.stated(outputs, targets, loss)
