"""Rule objects as a script for Amazon SageMaker Debugger makes them, and the configuration that says the same (docs/rules/python.md)."""

import sys

from .compat.debugger import (
    Action, ActionList, Actions, CollectionConfig, ProfilerRule, Rule, configuration, read_job, rule_configs,
    rule_job_summary, to_yaml, write,
)
from .compat.debugger import _main as main

__all__ = ["Action", "ActionList", "Actions", "CollectionConfig", "ProfilerRule", "Rule", "configuration", "read_job",
           "rule_configs", "rule_job_summary", "to_yaml", "write"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
