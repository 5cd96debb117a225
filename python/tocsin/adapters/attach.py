"""What ``watch()`` was given, attached to the adapter of its framework."""

import sys
from typing import Any, Optional

from tocsin.loop.phases import Wanted
from tocsin.loop.sink import Sink


def attach(sink: Sink, model: Any, optimizer: Any, loss: Any, name: Optional[str] = None,
           phases: Wanted = True) -> None:
    """The same again attaches nothing. A framework that the script has
    not imported is not imported for this."""
    timed = sink.phases.wanted(phases)
    if "torch" not in sys.modules:
        return
    from tocsin.adapters.torch.ledger.adapter import Ledger
    from tocsin.adapters.torch.optimizers.scalers import Scalers
    from tocsin.adapters.torch.surroundings.schedules import Schedules
    from tocsin.adapters.torch.surroundings.waits import Waits
    from tocsin.adapters.torch.surroundings.workers import Workers

    if not any(isinstance(adapter, Waits) for adapter in sink.adapters()):
        Waits(sink, timed)
        Schedules(sink)
        if sink.rank == 0:
            Workers(sink)
    if sink.ledger is None and sink.wants_ledger:
        with sink.guard("ledger"):
            Ledger(sink)
        with sink.guard("scaler"):
            Scalers(sink)
    if model is None and optimizer is None and loss is None:
        return
    from tocsin.adapters.torch.adapter import TorchAdapter
    from tocsin.adapters.torch.optimizers.hooks import unwrapped
    from tocsin.adapters.torch.first_updates.lag import Targets
    from tocsin.adapters.torch.models.state import state_matters

    optimizer = unwrapped(optimizer)
    if any(adapter.watches(model, optimizer) for adapter in sink.adapters()):
        return
    TorchAdapter(sink, model, optimizer, loss, name, timed)
    if sink.wants_ledger and sink.rank == 0:
        with sink.guard("lag"):
            sink.lag = sink.lag or Targets(sink)
            sink.lag.scan()
    if model is not None or optimizer is not None:
        sink.watched(optimizer if model is None else model)
    if model is not None:
        sink.follow(model, state_matters(model))
