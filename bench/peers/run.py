#!/usr/bin/env python3
"""Our router beside Prometheus Alertmanager, in turns on this machine, told the same.

  bench/peers/run.py [--alerts 100000] [--groups 1000] [--wait 30] [--only tocsin|tocsin-with-page|alertmanager]

Each gets ALERTS alerts with the same labels in GROUPS groups (group_wait WAIT s, group_interval
5 min), and tells them by webhook to a receiver here, which is in nobody's figures. Then every alert is sent again, which tells nothing new.
Then the program is ended and started: whole is when it knows of all alerts again; Alertmanager keeps
none, so they are sent to it at once. The router is the program itself on the journal: reading,
state, outbox and delivery records are all in its figures. It is measured without the store of the
page, which Alertmanager has none of, and once more with it, as it ships. CPU is the process's, user
and system.

Prints the machine's load (1, 5 and 15 minutes), and each figure beside Alertmanager's: `name  value unit  ratio  target  pass|miss`; exit code 1:
a target was missed; 2: it did not work."""
import argparse, http.client, http.server, json, os, pathlib, shutil, signal, socket, subprocess, sys
import tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Receiver:
    """Counts the firing alerts that messages list."""

    def __init__(self, count):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                told = count(json.loads(body))
                with outer.lock:
                    outer.told += told
                    outer.messages += 1
                self.send_response(204)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.told = self.messages = 0
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Peer:
    """One program: how it is started, fed, and asked how many alerts it knows."""

    def __init__(self, args, folder):
        self.args, self.folder, self.port = args, folder, free_port()
        self.receiver = Receiver(self.firing_in)
        self.process = None

    def start(self):
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def metric(self, name):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        except OSError:
            return None
        found = [line.rsplit(" ", 1)[1] for line in text.splitlines()
                 if line.startswith(name + " ") or line.startswith(name + "{")]
        return sum(map(float, found)) if found else None

    def until(self, what, holds, limit=240, every=0.05):
        """Seconds until it holds. An answer costs the one that is asked 2 ms: where only CPU counts it is asked less often."""
        begin = time.monotonic()
        while not holds():
            if self.process.poll() is not None or time.monotonic() - begin > limit:
                tail = (self.folder / "log").read_text(errors="replace")[-2000:]
                sys.exit(f"peers: {self.name}: {what}: not within {limit} s, or it ended; told {self.receiver.told}, "
                         f"known {self.known()}\n{tail}")
            time.sleep(every)
        return time.monotonic() - begin

    def settled(self):
        """Waits until it does nothing any more: a tenth of a processor at most, for two seconds."""
        for _ in range(10):
            before = cpu(self.process.pid)
            time.sleep(2)
            if cpu(self.process.pid) - before < 0.2:
                return

    def measure(self):
        out, args = {}, self.args
        self.start()
        self.until("the start", self.ready)
        self.settled()
        idle = memory(self.process.pid)
        used = cpu(self.process.pid)
        self.feed(0)
        self.until("reading", lambda: self.known() == args.alerts)
        self.until("telling", lambda: self.receiver.told >= args.alerts)
        self.settled()
        out["cpu"] = cpu(self.process.pid) - used
        out["memory"] = (memory(self.process.pid) - idle) / args.alerts
        out["messages"] = self.receiver.messages
        used, seen = cpu(self.process.pid), self.taken()
        self.feed(1)
        self.until("reading again", lambda: self.taken() - seen >= args.alerts, every=0.2)
        self.settled()
        out["again"] = (cpu(self.process.pid) - used) / args.alerts
        self.stop()
        begin = time.monotonic()
        self.start()
        self.until("the second start", self.ready, every=0.02)
        self.again_from_nothing()
        self.until("being whole", lambda: self.known() == args.alerts, every=0.02)
        out["restart"] = time.monotonic() - begin
        out["restart_cpu"] = cpu(self.process.pid)
        self.stop()
        return out

    def again_from_nothing(self):
        pass


class Tocsin(Peer):
    name = "tocsin"
    page = False  # nothing is kept for the page

    @staticmethod
    def firing_in(body):
        return sum(one["status"] == "firing" for one in body["data"]["issues"])

    def command(self):
        config = self.folder / "tocsin.yaml"
        config.write_text(f"""
transport: {{ journal: "{self.folder}/journal" }}
route:
  receiver: oncall
  group_by: [job]
  group_wait: {self.args.wait}s
  group_interval: 5m
receivers:
  oncall:
    webhook: {{ url: "{self.receiver.url}", allow_private: [127.0.0.0/8], max_alerts: 1000, max_payload: 1MiB }}
http: {{ listen: "127.0.0.1:{self.port}" }}
log: {{ level: warn, format: logfmt }}
insights: {{ enabled: {str(self.page).lower()} }}
""")
        return [os.environ.get("TOCSIN_BINARY", ROOT / "build/release/app/tocsin"), "route", "-c", config]

    def ready(self):
        return self.metric("tocsin_router_issues_known") is not None

    def known(self):
        return self.metric("tocsin_router_issues_known")

    def taken(self):
        return self.metric("tocsin_router_events_received_total") or 0

    def feed(self, turn):
        """Ten portions, each once the one before is read: an HTTP client waits for its answers too."""
        members, portion, seen = self.args.alerts // self.args.groups, self.args.alerts // 10, self.taken()
        for first in range(0, self.args.alerts, portion):
            last = min(first + portion, self.args.alerts)
            subprocess.run([ROOT / "build/release/bench/peers_feed", self.folder / "journal", str(members), str(turn),
                            str(first), str(last)], check=True)
            self.until("reading", lambda: self.taken() - seen >= last, every=0.2)


class TocsinWithPage(Tocsin):
    name = "tocsin-with-page"
    page = True


class Alertmanager(Peer):
    name = "alertmanager"

    @staticmethod
    def firing_in(body):
        return sum(one["status"] == "firing" for one in body["alerts"])

    def command(self):
        config = self.folder / "alertmanager.yml"
        config.write_text(f"""
route:
  receiver: oncall
  group_by: [job]
  group_wait: {self.args.wait}s
  group_interval: 5m
  repeat_interval: 4h
receivers:
- name: oncall
  webhook_configs:
  - url: "{self.receiver.url}"
    max_alerts: 0
""")
        return ["prometheus-alertmanager", f"--config.file={config}", f"--storage.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address=", "--log.level=warn"]

    def ready(self):
        return self.metric("alertmanager_build_info") is not None

    def known(self):
        return self.metric('alertmanager_alerts{state="active"}')

    def taken(self):
        return self.metric('alertmanager_alerts_received_total{status="firing",version="v2"}') or 0

    def feed(self, _):
        begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        for first in range(0, self.args.alerts, 64):  # as many as Prometheus sends at a time
            alerts = [self.alert(i, begin) for i in range(first, min(first + 64, self.args.alerts))]
            connection.request("POST", "/api/v2/alerts", json.dumps(alerts), {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                sys.exit(f"peers: alertmanager refuses alerts: {answer.status}")

    def alert(self, number, begin):
        group, member = divmod(number, self.args.alerts // self.args.groups)
        job, tensor = f"job-{group}", f"gradient/layer{member}.weight"
        return {"labels": {"alertname": "exploding_tensor", "rule": "exploding_tensor", "severity": "error",
                           "job": job, "run_uid": f"4e3046d4-8c1f-5278-82e3-{group:012d}",
                           "tensor": tensor, "worker": "worker_0"},
                "annotations": {"summary": f"17 values of {tensor} are not finite",
                                "recommendation": "Look at the learning rate and at the batch of this step."},
                "startsAt": begin}

    def again_from_nothing(self):
        self.feed(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alerts", type=int, default=100_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--wait", type=int, default=30, help="group_wait, seconds")
    parser.add_argument("--only", choices=["tocsin", "tocsin-with-page", "alertmanager"], help="one of them, without ratios")
    args = parser.parse_args()
    if args.only in (None, "alertmanager") and not shutil.which("prometheus-alertmanager"):
        print("peers: prometheus-alertmanager is not installed (tools/setup bench)", file=sys.stderr)
        return 2
    found = {}
    for peer in (Alertmanager, Tocsin, TocsinWithPage):
        if args.only not in (None, peer.name):
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="peers-"))
        one = peer(args, folder)
        try:
            found[peer.name] = one.measure()
        finally:
            if one.process is not None and one.process.poll() is None:
                one.process.kill()
                one.process.wait()
            shutil.rmtree(folder, ignore_errors=True)
    print("load of the machine meanwhile  " + "  ".join(f"{one:.1f}" for one in os.getloadavg()))
    missed = False
    # A goal is a share of Alertmanager's figure; where it stands by itself, it is one in the unit.
    for key, name, unit, scale, goal, by_itself in (
            ("cpu", "CPU until all are told", "CPU-s", 1, 0.2, False),
            ("memory", "memory per open issue", "KB", 1e-3, 2, True),
            ("again", "CPU per issue that is sent again", "us", 1e6, 0.2, False),
            ("restart", "whole after a restart", "s", 1, 0.5, True),
            ("restart_cpu", "CPU until then", "CPU-s", 1, None, False)):
        for peer, figures in found.items():
            line = f"{peer}: {name}  {figures[key] * scale:.4g} {unit}"
            if peer != "alertmanager" and "alertmanager" in found:
                ratio = figures[key] / found["alertmanager"][key]
                line += f"  {ratio:.2f}"
                if peer == "tocsin" and goal is not None:
                    reached = (figures[key] * scale if by_itself else ratio) <= goal
                    missed = missed or not reached
                    line += f"  <= {goal:g}{' ' + unit if by_itself else ''}  {'pass' if reached else 'miss'}"
            print(line)
    for peer, figures in found.items():
        print(f"{peer}: messages  {figures['messages']}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
