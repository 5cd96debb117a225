"""tools/step_arrows: a header that differs from the table is refused, and written anew."""
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE, HEADER, TOOL = "python/tocsin/loop/step_arrows.py", "collectors/hook/abi/step_arrows.h", "tools/step_arrows"


def test_a_header_that_differs_from_the_table_is_refused_and_written_anew(tmp_path):
    for path in (TABLE, HEADER, TOOL):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)

    def run(*arguments):
        return subprocess.run([tmp_path / TOOL, *arguments], text=True, capture_output=True, check=False)

    assert run("--check").returncode == 0
    table = tmp_path / TABLE
    table.write_text(table.read_text().replace("_arrows(HELD,", "_arrows(OPEN,"))
    refused = run("--check")
    assert refused.returncode == 1 and HEADER in refused.stderr
    assert run().returncode == 0 and run("--check").returncode == 0
    assert (tmp_path / HEADER).read_text().count("S::held") == (ROOT / HEADER).read_text().count("S::held") - 1
