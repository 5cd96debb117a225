"""tools/lib/thread_safety.py has Clang find what is touched without its mutex."""

import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import thread_safety  # noqa: E402

HEADER = """#pragma once
#include "core/mutex.h"
class Tally {
 public:
  void add();
  void wait();

 private:
  tocsin::core::Mutex mutex_;
  tocsin::core::CondVar changed_;
  int count_ GUARDED_BY(mutex_) = 0;
};
"""
HELD = '#include "app/tally.h"\nvoid Tally::add() {\n  const tocsin::core::MutexLock lock(mutex_);\n  ++count_;\n}\n'
BARE = '#include "app/tally.h"\nvoid Tally::add() { ++count_; }\n'
WAITS = ('#include "app/tally.h"\nvoid Tally::wait() {\n  const tocsin::core::MutexLock lock(mutex_);\n'
         "  changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return count_ > 0; });\n}\n")


def house(tmp_path, **sources):
    (tmp_path / "app").mkdir()
    shutil.copytree(ROOT / "core", tmp_path / "core")
    (tmp_path / "app" / "tally.h").write_text(HEADER)
    for name, text in sources.items():
        (tmp_path / "app" / f"{name}.cc").write_text(text)
    commands = {f"app/{name}.cc": f"c++ -O3 -I{tmp_path} -std=c++20 -Wall -c {name}.cc" for name in sources}
    return thread_safety.groups(tmp_path, list(commands), commands)


@pytest.mark.skipif(not shutil.which("clang++-14"), reason="only Clang analyses locks")
@pytest.mark.parametrize("add, found", [(HELD, False), (BARE, True)])
def test_a_field_without_its_mutex_is_found(tmp_path, add, found):
    [(flags, sources)] = house(tmp_path, add=add, waits=WAITS, other="int nothing;\n")
    assert sources == ["app/add.cc", "app/waits.cc"]  # the third knows no mutex
    said = thread_safety.problems(tmp_path, flags, sources)
    assert ("app/add.cc:2:" in said and "requires holding mutex 'mutex_'" in said) == found
    assert bool(said) == found


@pytest.mark.skipif(not shutil.which("clang++-14"), reason="only Clang analyses locks")
def test_sources_that_do_not_fit_together_are_looked_at_one_by_one(tmp_path):
    same = "namespace { int name; }\n"
    [(flags, sources)] = house(tmp_path, add=HELD + same, waits=WAITS + same)
    assert thread_safety.compile_unit(tmp_path, flags, sources).returncode != 0
    assert thread_safety.problems(tmp_path, flags, sources) == ""
