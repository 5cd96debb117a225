"""Events of a device that is not here."""


class Event:
    """Done when the test says so."""

    def __init__(self):
        self.done, self.waited = False, 0

    def query(self):
        return self.done

    def synchronize(self):
        self.done, self.waited = True, self.waited + 1

    def elapsed_time(self, other):
        assert other.done
        return 2.0
