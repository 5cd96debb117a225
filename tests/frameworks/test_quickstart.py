"""The tutorial docs/quickstart.md, word for word, on today's PyTorch and with the library of the wheel."""
import os
import pathlib
import re
import subprocess
import sys

from tests.support.hook_support import Telemetry

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "quickstart.md").read_text(encoding="utf-8")


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL).group(1)


def test_the_loop_that_breaks_itself_is_stopped(server, tmp_path):
    out = tmp_path / "tocsin-data"
    config = block("yaml").replace("./tocsin-data", str(out)) + "http: { listen: '127.0.0.1:0' }\n"
    one = server(config)
    one.wait_for("ready")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    environment["OMP_NUM_THREADS"] = "1"  # on a busy machine threads that wait for each other are a hundred times slower
    loop = block("python")
    assert "range(2000)" in loop  # a slow engine may need more steps than that
    (tmp_path / "train.py").write_text(loop.replace("range(2000)", "range(2_000_000)"), encoding="utf-8")
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=300, check=False)
    assert done.returncode == 77, done.stdout + done.stderr
    stopped = re.fullmatch(r"stopped at step (\d+)\n", done.stdout)
    assert stopped and int(stopped[1]) >= 300, done.stdout
    assert (tmp_path / "checkpoint.pt").exists()
    assert one.all("issue_fired")[0]["rule"] == "exploding_tensor"
    one.wait_for("job_ended")
    assert [end["outcome"] for end in Telemetry(out).lifecycles("end")] == ["stopped_by_rule"]
