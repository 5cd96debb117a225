"""smdebug.core.logger."""

import logging


def get_logger(name: str = "tocsin.rules") -> logging.Logger:
    """What is said to it stands in tocsin's log (``rule_output``)."""
    return logging.getLogger(name)
