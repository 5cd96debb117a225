"""A real Kafka for a test: a context manager around tools/kafka."""

import os
import pathlib
import subprocess
import uuid

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "kafka"


class Kafka:
    """`existing` is true when KAFKA_BOOTSTRAP_SERVERS names a cluster: then faults are not possible.

    owner: the process with which the cluster ends, however that ends; this one unless said otherwise."""

    def __init__(self, name=None, nodes=1, settings=None, profile="test", owner=None):
        self.name = name or f"test-{uuid.uuid4().hex[:8]}"
        self.nodes, self.settings, self.profile, self.bootstrap = nodes, settings or {}, profile, None
        self.owner = owner or os.getpid()
        self.existing = bool(os.environ.get("KAFKA_BOOTSTRAP_SERVERS"))

    def tool(self, command, *arguments):
        ran = subprocess.run([TOOL, command, *arguments, "--name", self.name], text=True, timeout=300,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert ran.returncode == 0, f"tools/kafka {command}: {ran.stderr}"
        return ran.stdout

    def start(self):
        settings = [f"--set={key}={value}" for key, value in self.settings.items()]
        out = self.tool("start", f"--nodes={self.nodes}", f"--profile={self.profile}",
                        f"--until-pid={self.owner}", *settings)
        self.bootstrap = out.strip().split("=", 1)[1]

    def topic(self, name, partitions=1, **config):
        configs = [f"--config={key.replace('_', '.')}={value}" for key, value in config.items()]
        self.tool("topic", name, f"--partitions={partitions}", *configs)

    def _fault(self, command, node):
        self.tool(command, *([f"--node={node}"] if node else []))

    def kill(self, node=None):
        self._fault("kill", node)

    def restart(self, node=None):
        self._fault("restart", node)

    def pause(self, node=None):
        self._fault("pause", node)

    def resume(self, node=None):
        self._fault("resume", node)

    def stop(self):
        self.tool("stop")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
