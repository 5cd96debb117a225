"""tools/lib/uncalled.py: what only tests call, and keys that nobody reads."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import uncalled  # noqa: E402

LIBRARY = """
namespace tocsin::rules {
struct Engine { void used(); void unused() const; Engine(); };
Engine::Engine() {}
void Engine::used() {}
void Engine::unused() const {}
int twice(int x) { return 2 * x; }
double twice(double x) { return 2 * x; }
}
extern "C" int tocsin_step() { return 0; }
extern "C" int tocsin_old() { return 0; }
"""
CALLER = """
namespace tocsin::rules { struct Engine { void used(); Engine(); }; int twice(int); }
int main() { tocsin::rules::Engine engine; engine.used(); return tocsin::rules::twice(1); }
"""


def compiled(folder, name, text):
    source = folder / f"{name}.cc"
    source.write_text(text)
    made = folder / f"{name}.o"
    subprocess.run(["c++", "-std=c++20", "-fPIC", "-c", str(source), "-o", str(made)], check=True)
    return str(made)


def test_functions_that_no_product_file_refers_to(tmp_path):
    objects = [compiled(tmp_path, "library", LIBRARY), compiled(tmp_path, "caller", CALLER)]
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "hook.py").write_text("step = library.tocsin_step\n")
    found = uncalled.functions_without_caller(objects, tmp_path)
    assert found == ["rules::Engine::unused", "rules::twice(double)", "tocsin_old"]


def test_keys_whose_value_goes_nowhere(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "config.h").write_text("struct Config { int used = 1; int lost = 2; };\n")
    (tmp_path / "rules" / "config.cc").write_text("""
void read(Reader& in, Config& cfg) {
  in.optional("used", cfg.used, "counts");
  in.optional("lost", cfg.lost, "counts lost");  // lost
  bool gone = false;
  in.optional("gone", gone, "of old times");
  bool kept = false;
  in.optional("kept", kept, "of new times");
  if (kept) in.error("kept", "no");
}
int f(const Config& cfg) { return cfg.used; }
""")
    files = ["rules/config.h", "rules/config.cc"]
    assert uncalled.keys_nobody_reads(tmp_path, files) == ["rules/config.cc: gone", "rules/config.cc: lost"]


def test_every_line_that_allows_something_has_a_reason(tmp_path):
    allow_list = tmp_path / "uncalled.txt"
    allow_list.write_text("# a heading\nrules::a  # tests look at it\nrules::b\n")
    names, problems = uncalled.allowed(allow_list)
    assert sorted(names) == ["rules::a", "rules::b"]
    assert problems == ["uncalled.txt:3: rules::b has no reason"]


def test_a_line_that_is_no_longer_needed_is_a_problem(tmp_path):
    (tmp_path / "build").mkdir()
    allow_list = tmp_path / "uncalled.txt"
    allow_list.write_text("rules/config.cc: gone  # accepted from old files\n")
    built, problems = uncalled.check(tmp_path, tmp_path / "build", [], allow_list)
    assert not built
    assert "take the line away" in problems
