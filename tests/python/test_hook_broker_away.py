"""A broker that is not there, or does not answer: what it costs a training process, and what is said of it."""
import socket
import time

from tests.support.hook_support import MODEL, closed_port, run_script


def script(body):
    return MODEL + body


def test_a_broker_that_is_not_there_costs_nothing_but_the_bounded_close(tmp_path):
    result = run_script(script("""
import time
begin = time.monotonic()
hook = tocsin.watch(model, optimizer, out="kafka://127.0.0.1:%d")
opened = time.monotonic() - begin
begin = time.monotonic()
train(hook, 200)
looped = time.monotonic() - begin
begin = time.monotonic()
hook.close(timeout=0.5)
closed = time.monotonic() - begin
stats = hook.stats()
assert opened < 1.0, opened
assert looped < 5.0, looped
assert closed < 1.5, closed
assert stats["hook_errors_total"] == {}, stats
""" % closed_port()), tmp_path, TOCSIN_QUIET="1")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_broker_that_never_answers_costs_no_more(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        result = run_script(script("""
import time
hook = tocsin.watch(model, optimizer, out="kafka://127.0.0.1:%d")
train(hook, 50)
begin = time.monotonic()
hook.close(timeout=0.5)
assert time.monotonic() - begin < 1.5
""" % silent.getsockname()[1]), tmp_path, TOCSIN_QUIET="1")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_without_close_a_dead_broker_delays_the_exit_by_its_bound_only(tmp_path):
    code = script("""
import time
train(tocsin.watch(model, optimizer, out="kafka://127.0.0.1:%d"), 5)
print(time.time())
""" % closed_port())
    took = []
    for disabled in ("1", ""):  # first the interpreter's own exit, which takes its time with torch on a busy machine
        result = run_script(code, tmp_path, **({"TOCSIN_DISABLED": disabled} if disabled else {}))
        took.append(time.time() - float(result.stdout))
        assert result.returncode == 0, result.stderr
    assert took[1] - took[0] < 9, took  # five seconds for delivery
    watching, lost = result.stderr.splitlines()
    assert watching.startswith("tocsin: watching run ") and lost.startswith("tocsin: ") and "did not reach" in lost


def test_what_a_dead_broker_swallowed_is_said_and_counted(tmp_path):
    body = script("""
hook = tocsin.watch(model, optimizer, out="kafka://127.0.0.1:%d")
train(hook, 20)
hook.close(timeout=0.3)
stats = hook.stats()
lost = sum(stats["dropped_records_total"].values()) + stats["waiting_records"] + stats["spooled_records"]
assert lost == stats["frames_total"] > 0, stats
assert "did not reach kafka://127.0.0.1" in stats["loss"], stats
""" % closed_port())
    told = run_script(body, tmp_path)
    assert told.returncode == 0 and told.stdout == "", told.stderr
    watching, lost = told.stderr.splitlines()
    assert watching.startswith("tocsin: watching run ") and lost.startswith("tocsin: ") and "did not reach" in lost
    for spool in ("spool", "off"):
        quiet = run_script(body, tmp_path, TOCSIN_QUIET="1", TOCSIN_SPOOL=spool)
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
