"""How a server ends or does not begin: a port in use, a closed terminal, what status says afterwards."""
import os
import pty
import select
import signal
import socket
import subprocess
import time

from tests.support.program import BINARY, run_cli

CONFIG = "transport: {{journal: {journal}}}\nrules: [exploding_tensor]\nhttp: {{listen: '127.0.0.1:{port}'}}\n"


def write(tmp_path, port=0):
    path = tmp_path / "t.yaml"
    path.write_text(CONFIG.format(journal=tmp_path / "data", port=port))
    return path


def test_a_port_in_use_is_exit_1_with_its_holder(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = run_cli("up", "-c", write(tmp_path, port))
    assert code == 1, err
    assert f"127.0.0.1:{port}" in err and f"by pid {os.getpid()} (" in err and "--web.listen-address" in err


class InTerminal:
    """A server as the foreground job of a terminal."""

    def __init__(self, config):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(BINARY, [str(BINARY), "evaluate", "-c", str(config)])
        self.text = ""

    def wait_for(self, word, seconds=30):
        end = time.monotonic() + seconds
        while word not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self.terminal], [], [], 0.5)[0]:
                self.text += os.read(self.terminal, 65536).decode()

    def code(self, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("it goes on without its terminal")


def test_a_closed_terminal_ends_a_foreground_server_cleanly(tmp_path):
    job = InTerminal(write(tmp_path))
    job.wait_for("ready")
    os.close(job.terminal)
    assert job.code() == 0


def test_sighup_by_hand_reloads_with_and_without_a_terminal(tmp_path):
    config = write(tmp_path)
    job = InTerminal(config)
    job.wait_for("ready")
    config.write_text(config.read_text().replace("[exploding_tensor]", "[exploding_tensor, overfit]"))
    os.kill(job.pid, signal.SIGHUP)
    job.wait_for("overfit")
    os.kill(job.pid, signal.SIGTERM)
    job.wait_for("stopped")
    assert job.code() == 0
    os.close(job.terminal)
    program = subprocess.Popen([BINARY, "evaluate", "-c", config], stderr=subprocess.PIPE, text=True, start_new_session=True)
    for line in program.stderr:
        if "msg=ready" in line:
            break
    program.send_signal(signal.SIGHUP)
    time.sleep(1.5)
    assert program.poll() is None, "without a terminal SIGHUP only reloads"
    program.terminate()
    assert program.wait(20) == 0
    program.stderr.close()
