"""A stop is told, once, although the issue behind it recovered before the first message, and although the router was killed in between."""
import os
import random
import subprocess
import sys
import textwrap

import pytest

from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}
topics: {{prefix: {prefix}, partitions: 3}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
route: {{receiver: people}}
receivers:
  people: {{webhook: {{url: '{url}', format: native, allow_private: [127.0.0.0/8]}}}}
  stop: {{stop_training: {{armed: true, deadline: {{ack: 120s, graceful: 120s, total: 300s}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

# One loss is NaN. The ranks go on, so that the issue recovers, until the test lets them obey.
SCRIPT = """
import os, sys, time
import tocsin
hook = tocsin.watch(run="r", job="llm")
for step in range(20000):
    hook.log(loss=float("nan") if step == 50 else 1.0)
    hook.step()
    if os.path.exists(sys.argv[1]) and hook.should_stop():
        hook.acknowledge_stop()
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


@pytest.fixture
def ranks(tmp_path):
    """ranks(config, count) starts so many of one run; those that are left end with the test."""
    processes = []

    def start(config, count):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT))
        base = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
        base.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
        base.update(TOCSIN_CONFIG=str(config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1", WORLD_SIZE=str(count),
                    MASTER_ADDR="127.0.0.1", MASTER_PORT=str(random.randrange(20000, 60000)))
        for rank in range(count):
            processes.append(subprocess.Popen([sys.executable, script, tmp_path / "obey"], env={**base, "RANK": str(rank)}))
        return processes

    yield start
    for process in processes:
        process.kill()
        process.wait(10)


@pytest.mark.parametrize("count", [1, 3])
def test_a_kill_between_recovery_and_message_hides_no_stop(server, kafka, ranks, tmp_path, count):
    with WebhookReceiver() as people:
        config = tmp_path / "tocsin.yaml"
        config.write_text(CONFIG.format(kafka=kafka, prefix=f"told{random.randrange(10**9)}", url=people.url))
        one = server(config)
        one.wait_for("ready", timeout=90)
        running = ranks(config, count)
        one.wait_for("issue_resolved", timeout=60, rule="exploding_tensor")
        one.wait_for("delivery_finished", timeout=60, type="stop_training")
        one.kill()
        assert not people.accepted(), "nobody was told before the kill"

        (tmp_path / "obey").touch()
        server(config).wait_for("ready", timeout=90)
        assert [process.wait(90) for process in running] == [77] * count

        def told():
            return [request["json"] for request in people.accepted()]
        assert wait_for(told, 90), "the stop was told to nobody"
        body = told()[0]
        found = [issue for issue in body["issues"] if issue["rule"] == "exploding_tensor"]
        assert found and all((issue["status"], issue["resolution"]) == ("resolved", "recovered") for issue in found)
        (run,) = body["runs"]
        assert run["stop"]["rule"] == "exploding_tensor" and run["stop"]["requested_by"] == "router"
        assert run["world_size"] == count
        ids = [one["notification_id"] for one in told()]
        assert len(ids) == len(set(ids)) and sum(one["kind"] == "open" for one in told()) == 1
