"""Where smdebug keeps its modes, collections and logger: rules import them from here with ``smdebug`` changed to ``tocsin``."""
