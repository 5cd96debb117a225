"""``import smdebug.tensorflow as smd``."""

from tocsin.compat.smdebug import *  # noqa: F401,F403
from tocsin.compat.smdebug import __all__
