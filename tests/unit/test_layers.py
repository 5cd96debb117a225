"""tests/check_layers.py finds each kind of breach, in a small house made for it."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import check_layers  # noqa: E402

LAYERS = """
[rooms]
core:
rules: core
app: core rules rules/shared
rules/shared: core

[doors]
rules/shared/library.h

[inner]
core: # values
rules: run  # the door
rules/run: | series.h  # series
rules/tell: # words
rules/shared: # a library
app: # the program
app/cli: # commands

[libraries]
re2/: rules/
nlohmann/: core/json.cc

[system]
app/

[clock]
app/clock.h  # the adapter

[sleep]
app/

[thread]
app/

[lock]
app/

[bare_lock]
core/mutex.h

[chance]
app/

[environment]
app/

[tests]
tests/unit/rules: rules/inside.h  # a table
"""

# What uses every leave once, so that a house without a breach is silent.
HOUSE = {
    "core/value.h": "#include <vector>\n",
    "core/mutex.h": "std::mutex m;\n",
    "core/json.cc": "#include <nlohmann/json.hpp>\n",
    "rules/rules.h": '#include "rules/public.h"\n',
    "rules/public.h": '#include "core/value.h"\n#include <re2/re2.h>\n',
    "rules/inside.h": "// Sleeps never: std::this_thread::sleep_for and std::mutex are words here.\n",
    "rules/inside.cc": '#include "rules/run/series.h"\n',
    "rules/run/series.h": '#include "rules/rules.h"\n',
    "rules/run/hidden.h": "",
    "rules/tell/tell.cc": "",
    "rules/shared/shared.h": "",
    "rules/shared/library.h": "",
    "core/loader.cc": '#include "rules/shared/library.h"\n',
    "app/app.h": '#include "rules/rules.h"\n',
    "app/clock.h": "auto now = std::chrono::system_clock::now();\n",
    "app/cli/main.cc": "#include <unistd.h>\nstd::jthread t; core::Mutex m; std::random_device r;\n"
                   'auto home = getenv("HOME"); void f() { std::this_thread::sleep_for(s); }\n',
    "tests/unit/rules/a_test.cc": '#include "rules/rules.h"\n#include "rules/public.h"\n#include "rules/inside.h"\n'
                                  '#include "rules/run/series.h"\n#include "core/value.h"\n',
    "bench/a.cc": '#include "rules/rules.h"\n',
}


def findings(folder, **changes):
    for name, text in {"tests/layers.txt": LAYERS, **HOUSE, **{name.replace("__", "/"): text for name, text in changes.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(check_layers.breaches(folder))


def test_a_house_in_order_is_silent(tmp_path):
    assert findings(tmp_path) == []


@pytest.mark.parametrize("path, line, words", [
    ("rules/a.cc", '#include "app/app.h"', "rules may not include app"),
    ("app/a.cc", '#include "rules/public.h"', "include rules by its door"),
    ("app/a.cc", "#include <re2/re2.h>", "belongs to rules/"),
    ("core/a.h", "#include <nlohmann/json.hpp>", "belongs to core/json.cc"),
    ("rules/a.cc", "#include <absl/strings.h>", "of no library"),
    ("rules/a.cc", "#include <sys/stat.h>", "the operating system's"),
    ("rules/a.cc", "#include <unistd.h>", "the operating system's"),
    ("app/a.cc", "auto t = steady_clock::now();", "no clock here"),
    ("rules/a.cc", "auto t = std::chrono::system_clock::now();", "no clock here"),
    ("rules/a.cc", "auto t = time(nullptr);", "no clock here"),
    ("rules/a.cc", "std::this_thread::sleep_until(t);", "no sleep here"),
    ("rules/a.cc", "usleep(3);", "no sleep here"),
    ("rules/a.cc", "std::thread worker;", "no thread here"),
    ("rules/a.cc", "std::jthread worker;", "no thread here"),
    ("rules/a.cc", "auto later = std::async(f);", "no thread here"),
    ("rules/a.cc", "mutable core::Mutex mutex_;", "no lock here"),
    ("rules/a.cc", "core::CondVar changed_;", "no lock here"),
    ("rules/a.cc", "mutable std::shared_mutex guard;", "no bare_lock here"),
    ("app/a.cc", "std::mutex mutex_;", "no bare_lock here"),
    ("app/a.cc", "const std::lock_guard lock(mutex_);", "no bare_lock here"),
    ("app/a.cc", "std::unique_lock<core::Mutex> lock(mutex_);", "no bare_lock here"),
    ("app/a.cc", "std::condition_variable_any changed_;", "no bare_lock here"),
    ("rules/a.cc", "std::mt19937_64 random;", "no chance here"),
    ("rules/a.cc", 'auto home = std::getenv("HOME");', "no environment here"),
    ("rules/tell/a.cc", '#include "rules/run/series.h"', "rules/tell may not include rules/run"),
    ("rules/a.cc", '#include "rules/run/hidden.h"', "rules/run/hidden.h is no door of rules/run"),
    ("rules/run/a.cc", '#include "rules/public_not.h"', "rules/run may not include rules (tests/layers.txt, [inner])"),
    ("rules/shared/a.cc", '#include "rules/rules.h"', "rules/shared may not include rules"),
    ("rules/a.cc", '#include "rules/shared/shared.h"', "rules may not include rules/shared"),
    ("app/a.cc", '#include "rules/shared/inside.h"', "include rules/shared by its door rules/shared/shared.h"),
    ("tests/unit/rules/b_test.cc", '#include "rules/run/hidden.h"', "enter rules by its door"),
    ("tests/unit/rules/b_test.cc", '#include "rules/hidden.h"', "enter rules by its door"),
    ("tests/unit/app/b_test.cc", '#include "rules/run/series.h"', "enter rules by its door"),
    ("tests/unit/app/b_test.cc", '#include "rules/inside.h"', "enter rules by its door"),
    ("bench/b.cc", '#include "rules/run/series.h"', "enter rules by its door"),
])
def test_a_breach_is_found(tmp_path, path, line, words):
    found = findings(tmp_path, **{path.replace("/", "__"): "// first\n" + line + "\n"})
    assert len(found) == 1
    assert found[0].startswith(f"{path}:2: ") and words in found[0]


@pytest.mark.parametrize("line", [
    "std::thread::id self;", "double time(double at);", "const auto t = frame.time(0);", "// std::mutex", 'say("std::mutex");',
    "std::chrono::steady_clock::time_point at;", "void sleep_until_readable(int fd);",
])
def test_what_only_looks_like_it_is_not(tmp_path, line):
    assert findings(tmp_path, rules__a_cc="") == []
    assert findings(tmp_path, **{"rules__a.cc": line + "\n"}) == []


def test_a_circle_of_inner_rooms_is_found(tmp_path):
    listed = LAYERS.replace("rules/run: | series.h", "rules/run: . | series.h").replace("rules: run  #", "rules: run | inside.h  #").split("\ntests/unit")[0] + "\n"
    found = findings(tmp_path, **{"tests__layers.txt": listed, "rules__run__a.cc": '#include "rules/inside.h"\n'})
    assert found == ["tests/layers.txt: a circle: rules -> rules/run -> rules"]


def test_a_way_and_a_door_that_nothing_uses_are_named(tmp_path):
    found = findings(tmp_path, **{"rules__inside.cc": ""})
    assert [words.split(": ", 1)[1] for words in found] == [
        "rules includes nothing of rules/run; take it out", "no other inner room includes rules/run/series.h; take it out"]


def test_the_section_is_printed_as_the_includes_are(tmp_path):
    findings(tmp_path)
    rules = check_layers.Rules((tmp_path / "tests" / "layers.txt").read_text())
    assert list(check_layers.inner_section(tmp_path, rules)) == [
        "app:  # the program", "app/cli:  # commands", "core:  # values", "rules: run  # the door", "rules/run: | series.h  # series",
        "rules/shared:  # a library", "rules/tell:  # words"]


def test_a_folder_that_is_not_listed_is_named(tmp_path):
    found = findings(tmp_path, **{"app__new__a.cc": ""})
    assert found == ["tests/layers.txt: [inner] has no line for app/new; tests/check_layers.py . --inner prints it"]


def test_leave_that_nothing_needs_is_named(tmp_path):
    found = findings(tmp_path, **{"app__clock.h": "", "tests__unit__rules__a_test.cc": "", "core__json.cc": ""})
    assert sorted(words.split(": ", 1)[1] for words in found) == [
        "[clock] app/clock.h needs no leave; take it out", "core/json.cc includes no nlohmann/; take it out",
        "no test of tests/unit/rules includes rules/inside.h; take it out"]


def test_a_leave_of_tests_says_why(tmp_path):
    with pytest.raises(SystemExit, match="say why"):
        findings(tmp_path, **{"tests__layers.txt": LAYERS.replace("  # a table", "")})
