"""What a script may say of its task."""

from typing import Any, Callable, Optional, Union

from ._contain import contained


class TellsTask:
    """Of a :class:`tocsin.Hook`."""

    sink: Any

    @contained()
    def targets(self, outputs: Any, targets: Any, *, loss: Optional[Union[str, Callable[[Any, Any], Any]]] = None, inputs: Any = None) -> None:
        """What the outputs of this step are compared with, for the ledger (docs/ledger.md), where the script's loss calls no
        function of ``torch.nn.functional``. Call it once for each forward pass, in training and in evaluations.

        ``outputs``, ``targets``: tensors of PyTorch, or arrays of NumPy, with one row for each sample, ``(n, …)``. ``loss``: the name of such a
        function (``"cross_entropy"``, ``"mse_loss"``), or a function of (outputs, targets) that gives one number for each
        sample, or several that are averaged; it is called once more with targets exchanged, without gradients. None:
        ``cross_entropy`` for whole numbers, else ``mse_loss``. ``inputs``: with arrays, what the model was given (an array, or a list or
        dictionary of them, with a row for each sample); of PyTorch a watched model tells it. No element is sent.
        """
        if not hasattr(outputs, "requires_grad") and self.sink.wants_ledger:
            if self.sink.stated is None:
                from ._ledger_loop import Stated
                self.sink.stated = Stated(self.sink)
            self.sink.stated.tell(outputs, targets, loss, inputs)
            return
        ledger = self.sink.ledger
        if ledger is not None:
            ledger.stated(outputs, targets, loss)
