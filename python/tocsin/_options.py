"""What the user gave and what the process knows, as the library wants it."""

import ctypes
import json
import sys
from typing import Any

from . import _client
from ._judge import rules_text, stop_text
from ._process import distributed, framework


def client_options(run: Any, job: Any, labels: Any, out: Any, capture: Any,
                   config: Any, rules: Any = None, stop: Any = None) -> _client.Options:
    text = _client.encoded
    options = _client.Options()
    options.size = ctypes.sizeof(options)
    options.run, options.job, options.out, options.config = map(text, (run, job, out, config))
    if isinstance(capture, (list, tuple)):
        capture = {"collections": list(capture)}
    if capture is not None:
        options.capture = text(capture if isinstance(capture, str) else json.dumps(capture))
    if labels:
        options.labels = text(json.dumps({str(k): str(v) for k, v in labels.items()}))
    if rules is not None and rules is not False:
        options.rules, options.stop = text(rules_text(rules, config)), text(stop_text(stop))
    options.framework = text(framework())
    options.script = text(getattr(sys.modules.get("__main__"), "__file__", None))
    options.rank, options.world_size = distributed()
    return options
