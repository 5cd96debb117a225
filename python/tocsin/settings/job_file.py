"""The JSON file in which a job for Amazon SageMaker says what its hook captures."""

import json
import os
from typing import Any, Optional

JSON_OF_A_JOB = "/opt/ml/input/config/debughookconfig.json"


def capture_of_json_file(named: Optional[str] = None) -> Optional[Any]:
    """What stands in this file, else in the one of SMDEBUG_CONFIG_FILE_PATH, else in that of the job; None where there is
    no file. A file that is named and not there is an error."""
    path = named or os.environ.get("SMDEBUG_CONFIG_FILE_PATH") or JSON_OF_A_JOB
    if not os.path.isfile(path):
        if named:
            raise FileNotFoundError(f"no such file: {path}")
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)
