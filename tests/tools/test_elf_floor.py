"""What tools/wheel takes for the functions that a library may show."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import elf_floor  # noqa: E402


def test_functions_of_every_version_may_be_shown():
    script = "A_0 {\n  global:\n    a_open;\n    a_close;\n  local:\n    *;\n};\n\nA_2 {\n  global:\n    a_next;\n} A_0;\n"
    assert elf_floor.shown_by(script) == {"a_open", "a_close", "a_next"}
