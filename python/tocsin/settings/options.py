"""What the user gave and what the process knows, as the library wants it."""

import ctypes
import json
import os
import sys
import warnings
from typing import Any, Dict, Optional, Tuple

from tocsin.library import abi
from tocsin.library.texts import path_of, utf8
from tocsin.process.facts import distributed, framework
from .rules_given import rules_text, stop_text


def client_options(run: Any, job: Any, labels: Any, out: Any, capture: Any,
                   config: Any, rules: Any = None, stop: Any = None) -> abi.Options:
    text = abi.encoded
    options = abi.Options()
    options.size = ctypes.sizeof(options)
    capture, place = _original(capture, config)
    if out is None and place and not (os.environ.get("TOCSIN_BROKERS") or os.environ.get("TOCSIN_OUT")):
        out = place
    options.run, options.job = text(run), text(job)
    options.out, options.config = (None if path is None else path_of(path) for path in (out, config))
    if capture is not None:
        options.capture = text(capture if isinstance(capture, str) else json.dumps(capture))
    given = _labels(labels)
    if given:
        options.labels = text(json.dumps({utf8(k): utf8(v) for k, v in given.items()}))
    if rules is not None and rules is not False:
        options.rules, options.stop = text(rules_text(rules, config)), text(stop_text(stop))
    elif stop is not None and stop is not False:
        warnings.warn(f"tocsin: stop={stop!r} stops nothing: no rules judge in this process. Give rules=, for instance "
                      f"watch(rules=True, stop={stop!r}), or let tocsin up stop the run (docs/stopping.md)",
                      RuntimeWarning, stacklevel=5)
    options.framework = text(framework())
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    options.script = None if script is None else path_of(script)
    options.rank, options.world_size = distributed()
    return options


def _labels(labels: Any) -> Dict[Any, Any]:
    """What cannot be labels is said, and the run goes on without."""
    try:
        return dict(labels or {})
    except (TypeError, ValueError):
        warnings.warn(f"tocsin: labels= expected names and texts such as {{'team': 'nlp'}}, found {labels!r:.80}; the run has none",
                      RuntimeWarning, stacklevel=6)
        return {}


def _original(capture: Any, config: Any) -> Tuple[Any, Optional[str]]:
    """(the section `capture`, the directory that goes with it), of whatever says what is captured."""
    file = os.environ.get("SMDEBUG_CONFIG_FILE_PATH")
    if capture is None and file:
        if config or os.environ.get("TOCSIN_CONFIG"):
            warnings.warn(f"tocsin: SMDEBUG_CONFIG_FILE_PATH ({file}) is not read: there is a configuration of tocsin",
                          RuntimeWarning, stacklevel=5)
        else:
            capture = file if file.endswith(".json") else _json(file)
    if capture is None or (isinstance(capture, str) and not capture.endswith(".json")):
        return capture, None
    from .hook_config import read  # seldom needed, and not small

    found = read(capture, framework().startswith("xgboost"))
    for words in found.warnings:
        warnings.warn(f"tocsin: capture: {words}", RuntimeWarning, stacklevel=5)
    return found.capture, found.out


def _json(file: str) -> Any:
    with open(file, encoding="utf-8") as opened:
        return json.load(opened)
