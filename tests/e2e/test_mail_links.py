"""Links of mails that a real server has sent: opened as a mail scanner does, pressed as a person does, on another replica, after a restart."""
import http.client
import json
import re
import urllib.parse
import urllib.request

from tests.support.program import run_cli
from tests.support.smtp_receiver import SmtpReceiver
from tests.support.telemetry import JournalWriter, scalar

TOKEN, SECRET = "0123456789-of-the-shift", "0123456789-of-the-links"
CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s, group_interval: 1s, repeat_interval: 2s}}
receivers:
  people: {{email: {{to: [ops@example.com], host: 127.0.0.1, port: {port}, tls: none}}}}
http:
  listen: '127.0.0.1:0'
  external_url: https://alarms.example
  links: {{secret_file: {folder}/links}}
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}]}}
"""
LINK = re.compile(r"https://alarms\.example(/act/[a-z0-9-]+)")


def place_of(program):
    return program.wait_for("started")["http"]


def ask(place, method, path, form=None):
    host, port = place.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.request(method, path, urllib.parse.urlencode(form or {}) if method == "POST" else None,
                       {"Content-Type": "application/x-www-form-urlencoded"} if method == "POST" else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}


def listed(place, what):
    request = urllib.request.Request(f"http://{place}/api/v1/{what}", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["items"]


def test_a_link_asks_first_and_does_it_once_on_any_replica(server, tmp_path):
    for name, text in (("shift", TOKEN), ("links", SECRET)):
        (tmp_path / name).write_text(text + "\n")
        (tmp_path / name).chmod(0o600)
    with SmtpReceiver() as smtp:
        smtp.accept()
        config = tmp_path / "t.yaml"
        config.write_text(CONFIG.format(folder=tmp_path, port=smtp.port))
        program = server(config)
        program.wait_for("ready")
        JournalWriter(tmp_path / "journal").append(*[scalar("digits", "loss", "NaN" if step >= 3 else 1.0, step, job="digits") for step in range(5)])
        mail = smtp.wait(1)[0]
        print(mail["body"])
        acknowledge, silence = LINK.findall(mail["body"])
        assert set(LINK.findall(mail["html"])) == {acknowledge, silence}, "the same as buttons"
        signatures = [link.rsplit("-", 1)[1] for link in (acknowledge, silence)]
        assert all(re.fullmatch("[a-z2-7]{32}", one) for one in signatures)

        place = place_of(program)
        for link in (acknowledge, silence):  # a scanner of mails
            for method in ("GET", "HEAD"):
                status, page, headers = ask(place, method, link)
                assert status == 200 and "script" not in page and headers["content-security-policy"].startswith("default-src 'none'")
        assert "all of run" in page or "all of run" in ask(place, "GET", silence)[1]
        assert listed(place, "acks") == [] and listed(place, "silences") == []
        assert ask(place, "GET", "/act.css")[0] == 200
        assert ask(place, "PUT", acknowledge)[0] == 405

        program.kill()
        program = server(config)  # knows nothing but the topics
        program.wait_for("ready")
        place = place_of(program)
        status, page, _ = ask(place, "POST", acknowledge, {"name": "Ada"})
        assert status == 200 and "Acknowledged by Ada (by link)." in page, page
        assert "Acknowledged already by Ada" in ask(place, "GET", acknowledge)[1]
        [ack] = listed(place, "acks")
        assert (ack["by"], ack["origin"]) == ("Ada (by link)", "link"), ack
        assert "acknowledged by Ada (by link)" in run_cli("issues", "list", "-c", config)[1]

        status, page, _ = ask(place, "POST", silence)
        assert status == 200 and "Silenced until" in page, page
        [made] = listed(place, "silences")
        assert made["actions"] == "notify" and "run_uid" in made["matchers"], made
        assert ask(place, "POST", silence)[0] == 200 and len(listed(place, "silences")) == 1

        assert ask(place, "POST", acknowledge[:-1] + ("a" if acknowledge[-1] != "a" else "b"))[0] == 403
        assert ask(place, "POST", silence.replace("/act/silence-", "/act/ack-"))[0] == 403
        assert 'tocsin_router_signature_failures_total{hook="act"} 2' in program.get("/metrics")[1]
        stored = b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("*") if path.is_file())
        assert b"0unsigned0" in stored and not any(one.encode() in stored for one in signatures), "no topic has a signature"
        assert not any(one in json.dumps(program.events) for one in [*signatures, SECRET])


def test_links_need_an_address_and_a_secret_of_some_length(tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("transport: {journal: data}\nrules: [exploding_tensor]\nroute: {receiver: people}\n"
                      "receivers: {people: {email: {to: [a@example.com]}}}\nhttp: {links: {secret: 0123456789-links}}\n")
    code, out, err = run_cli("check", config)
    assert code == 3 and "http.links" in out + err and "needs http.external_url" in out + err, out + err
    config.write_text(config.read_text().replace("http: {", "http: {external_url: 'https://a.example', ").replace("links}", "links, lifetime: 400h}"))
    code, out, err = run_cli("check", config)
    assert code == 3 and "5m … 120h" in out + err, out + err
