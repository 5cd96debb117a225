"""A stop that reaches a script without a line of ours: it ends where an update has ended, as by ``sys.exit``."""

import os
from typing import Any, Callable

from tocsin.process.lifetime import EXIT_STOPPED


def obey(hook: Any, say: Callable[[str], None]) -> None:
    """After an update. Raises ``SystemExit`` when a stop is wanted: on every rank after the same one, for
    each asks here. ``finally`` blocks and ``with`` statements of the script run; what stands behind its loop does not.
    """
    request = hook.should_stop()
    if request is None:
        return
    wants_checkpoint = request.mode == "checkpoint_then_stop"
    hook.acknowledge_stop(error="a script that is attached to without a line writes its own checkpoints"
                          if wants_checkpoint else None)
    if hook.rank == 0:
        say(f"stopped by {request.rule or 'a command'} after step {hook.step_number}: {request.reason or 'no reason was given'}")
    # torchrun ends the other workers of its node as soon as one ends with another status; `tocsin run` above
    # it knows of the stop, and gives 77.
    raise SystemExit(0 if "TORCHELASTIC_RUN_ID" in os.environ else EXIT_STOPPED)
