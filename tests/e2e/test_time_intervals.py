"""A route that is muted by a time interval: nobody hears of it until the interval ends, also across a kill; other routes go on."""
import datetime
import json

from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, scalar

CONFIG = """
transport: {{journal: {data}}}
rules: [exploding_tensor]
time_intervals:
  - name: just-now
    intervals: [{{times: {times}, location: UTC}}]
route:
  receiver: people
  group_wait: 0s
  group_interval: 2s
  group_by: [job]
  routes:
    - {{matchers: ['job="quiet"'], receivers: [people, stop, board], mute_time_intervals: [just-now]}}
receivers:
  people: {{webhook: {{shadow: true, url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
  stop: {{stop_training: {{armed: true, mode: stop}}}}
  board: {{publish_metric: {{}}}}
http: {{listen: '127.0.0.1:0'}}
"""


def broken(job):
    return [scalar(job, "loss", "NaN" if step == 3 else 1.0, step, job=job) for step in range(5)]


def told(program):
    return {(event["integration"].split("/")[0], event["group_key"].split('job="')[1].split('"')[0]) for event in program.all("notification_decided")}


def muted(program):
    [line] = [line for line in program.get("/metrics")[1].splitlines() if line.startswith("tocsin_router_muted_total ")]
    return float(line.split()[1])


def window(minutes):
    """From this minute on for so long, as parts of a day in UTC; and when it ends."""
    start = datetime.datetime.now(datetime.timezone.utc).replace(second=0, microsecond=0)
    end = start + datetime.timedelta(minutes=minutes)
    if start.date() == end.date():
        return [{"start": f"{start:%H:%M}", "end": f"{end:%H:%M}"}], end
    spans = [{"start": f"{start:%H:%M}", "end": "24:00"}]
    if f"{end:%H:%M}" != "00:00":
        spans.append({"start": "00:00", "end": f"{end:%H:%M}"})
    return spans, end


def test_a_muted_route_tells_when_its_interval_ends(server, tmp_path):
    times, end = window(minutes=2)
    config = tmp_path / "t.yaml"
    config.write_text(CONFIG.format(data=tmp_path / "data", times=json.dumps(times)))
    assert run_cli("check", "-c", config)[0] == 0
    program = server(config)
    program.wait_for("ready")
    journal = JournalWriter(tmp_path / "data")
    journal.append(*broken("quiet"))
    program.wait_for("issue_fired", job="quiet")
    journal.append(*broken("loud"))
    assert wait_for(lambda: {("people", "loud"), ("board", "quiet")} <= told(program), 30), told(program)
    assert wait_for(lambda: muted(program) > 0, 30)
    program.kill()
    program = server(config)
    program.wait_for("ready")
    journal.append(*broken("after"))
    assert wait_for(lambda: ("people", "after") in told(program), 30)
    if datetime.datetime.now(datetime.timezone.utc) < end:
        assert not {("people", "quiet"), ("stop", "quiet")} & told(program)
    assert wait_for(lambda: {("people", "quiet"), ("stop", "quiet")} <= told(program), 150), "the interval has ended"
    assert datetime.datetime.now(datetime.timezone.utc) >= end


def test_what_is_wrong_is_named_with_its_place(tmp_path):
    config = tmp_path / "t.yaml"
    text = CONFIG.format(data=tmp_path / "data", times='[{"start": "20:00", "end": "08:00"}]').replace("location: UTC", "location: Europe/Berln")
    config.write_text(text.replace("[just-now]", "[just-know]"))
    code, out, err = run_cli("check", "-c", config)
    said = out + err
    assert code == 3, said
    assert "over midnight write two entries: 20:00 to 24:00, and 00:00 to 08:00" in said
    assert 'did you mean "Europe/Berlin"?' in said
    assert "no time interval is called 'just-know'; did you mean 'just-now'?" in said
    assert all(f"t.yaml:{line}:" in said for line in (6, 13)), said
