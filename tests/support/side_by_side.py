"""A pytest plugin (`-p tests.support.side_by_side`): which tests run beside which others under pytest-xdist, and how long each takes.

A file is a unit of work: its tests run in order, on one worker. They may share a fixture, or the names of their runs: an agent hears
every hook of the machine. Each test of a file that says `pytest.mark.apart` is a unit of its own, which any worker may take.
Units that tests/long.txt names begin first, the longest before the others: a long one at the end would keep everybody waiting.
TOCSIN_TEST_SECONDS=FILE: append "seconds test" for every test that ran, fixtures included.
"""
import collections
import functools
import os
import pathlib

LONG = pathlib.Path(__file__).resolve().parents[1] / "long.txt"


@functools.cache
def _apart(path):
    return "pytest.mark.apart" in path.read_text(encoding="utf-8")


def unit_of(test, root):
    """The unit of work that a test id belongs to: its file, or the test itself."""
    path = test.partition("::")[0]
    return test if _apart(root / path) else path


def long_units(text):
    """{beginning of test ids: seconds} of a text with "seconds beginning" in each line; `#` begins a comment."""
    lines = (line.partition("#")[0].split(maxsplit=1) for line in text.splitlines())
    return {words[1].strip(): float(words[0]) for words in lines if words}


def longest_first(units, long):
    """The units in the order in which they begin. Those of unknown length keep their order, behind the long ones."""
    def seconds(unit):
        return max((took for beginning, took in long.items() if unit.startswith(beginning)), default=0)
    return sorted(units, key=seconds, reverse=True)


def pytest_collection_modifyitems(config, items):
    units = {item.nodeid: unit_of(item.nodeid, config.rootpath) for item in items}
    order = longest_first(dict.fromkeys(units.values()), long_units(LONG.read_text(encoding="utf-8")))
    place = {unit: number for number, unit in enumerate(order)}
    items.sort(key=lambda item: place[units[item.nodeid]])


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        return
    path = os.environ.get("TOCSIN_TEST_SECONDS")
    if path:
        config.pluginmanager.register(_Seconds(path), "tocsin_test_seconds")
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Distribution(), "tocsin_distribution")


class _Seconds:
    """Adds up what each test took, and writes it when the run ends."""

    def __init__(self, path):
        self.path, self.took = path, collections.Counter()

    def pytest_runtest_logreport(self, report):
        self.took[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        with open(self.path, "a", encoding="utf-8") as out:
            out.writelines(f"{seconds:.2f} {test}\n" for test, seconds in self.took.items())


class _Distribution:
    @staticmethod
    def pytest_xdist_make_scheduler(config, log):
        from xdist.scheduler.loadscope import LoadScopeScheduling

        class ByUnit(LoadScopeScheduling):
            def _split_scope(self, nodeid):
                return unit_of(nodeid, config.rootpath)

            def remove_node(self, node):
                """The test at which this worker crashed, or None. It is not tried again: it would crash the next worker too."""
                units = self.assigned_work.pop(node)
                left = [(unit, test) for unit, tests in units.items() for test, over in tests.items() if not over]
                if not left:
                    return None
                units[left[0][0]][left[0][1]] = True
                self.workqueue.update((unit, units[unit]) for unit, _ in left[1:])
                for other in self.nodes:
                    self._reschedule(other)
                return left[0][1]

        return ByUnit(config, log)
