"""`tocsin config show`: what holds and where it was written; no credential is in it, wherever somebody may put one."""
import json

from tests.support.program import run_cli

CANARIES = ["canary-hook-path", "canary-signing", "canary-chat", "canary-sasl", "canary-api", "canary-header", "canary-basic", "canary-variable", "canary-oauth",
            "canary-proxy", "canary-platform", "canary-inbound"]
CONFIG = """
transport:
  kafka: {bootstrap.servers: "broker:9092", security.protocol: SASL_SSL, sasl.username: tocsin, sasl.password: canary-sasl, producer: {ssl.key.pem: canary-sasl}}
cluster: lab
rules:
  - exploding_tensor
  - {use: all_zero, with: {threshold: 0.5, collection_names: [weights]}}
include: [receivers.yaml]
route: {receiver: people, group_wait: 10s, routes: [{matchers: [severity=critical], receivers: [chat, people], group_interval: 1m}]}
platforms: {ray: {url: "https://ray.example:8265", token: canary-platform}}
http:
  listen: '127.0.0.1:0'
  auth: {tokens: [{name: night, role: operator, token: canary-api-0123456789}]}
  inbound: [{name: pd, type: pagerduty, integration: pager, secret: canary-inbound-0123}]
"""
RECEIVERS = """
receivers:
  people:
    - webhook:
        url: https://hooks.example/canary-hook-path
        headers: {X-Tenant: canary-header}
        basic_auth: {username: tocsin, password: canary-basic}
        when: [severity=error]
    - email: {to: [ml@example.org], host: mail.example, from: t@example.org, username: me, password: "${MAIL}"}
  chat:
    slack: {url: "https://hooks.slack.com/services/canary-chat", proxy: "http://u:canary-proxy@proxy.example:3128"}
    webhook: {url: "https://other.example/x", oauth2: {client_id: me, client_secret: canary-oauth, token_url: "https://id.example/token", parameters: {client_assertion_key: canary-oauth}}, max_age: 2h}
  pager: {pagerduty: {id: pager, routing_key: 0123456789abcdef0123456789abcdef}}
"""


def written(tmp_path):
    (tmp_path / "receivers.yaml").write_text(RECEIVERS)
    config = tmp_path / "tocsin.yaml"
    config.write_text(CONFIG)
    return config


def shown(config, *words):
    code, out, err = run_cli("config", "show", config, *words, env={"MAIL": "canary-variable"})
    assert code == 0, out + err
    return out


def test_no_credential_is_shown_and_the_rest_is_with_its_line(tmp_path):
    config = written(tmp_path)
    found = json.loads(shown(config, "-o", "json"))
    text = shown(config) + shown(config, "--effective") + json.dumps(found)
    assert [one for one in CANARIES if one in text] == [] and "0123456789abcdef" not in text
    value = {path: one["value"] for path, one in found.items()}
    for path in ("receivers.people[0].webhook.url", "receivers.people[0].webhook.basic_auth.password", "receivers.people[1].email.password",
                 "receivers.people[0].webhook.headers.X-Tenant", "receivers.chat.slack.url", "receivers.chat.slack.proxy", "transport.kafka.sasl.password",
                 "receivers.chat.webhook.oauth2.client_secret", "http.auth.tokens[0].token", "http.inbound[0].secret", "platforms.ray.token",
                 "receivers.pager.pagerduty.routing_key"):
        assert value[path] == "<redacted>", path
    assert value["receivers.people[0].webhook.basic_auth.username"] == "tocsin" and value["receivers.people[1].email.host"] == "mail.example"
    assert value["transport.kafka.bootstrap.servers"] == "broker:9092" and value["rules[1].with.threshold"] == 0.5
    assert value["receivers.chat.webhook.max_age"] == "2h" and value["route.routes[0].group_interval"] == "1m" and value["cluster"] == "lab"
    assert found["receivers.chat.webhook.max_age"]["origin"] == f"{tmp_path}/receivers.yaml:12" and found["cluster"]["origin"] == f"{config}:4"
    assert value["transport.kafka.producer.ssl.key.pem"] == "<redacted>" and "router.resolve_timeout" not in found


def test_effective_adds_defaults_of_what_is_not_set(tmp_path):
    found = json.loads(shown(written(tmp_path), "--effective", "-o", "json"))
    assert found["router.resolve_timeout"] == {"value": "5m", "origin": "default"}
    assert found["route.group_wait"]["value"] == "10s" and found["route.group_wait"]["origin"].endswith(":9")
    assert found["route.group_interval"]["origin"] == "default" and "receivers.<name>.webhook.url" not in found
    assert not any(path.startswith("transport.journal") for path in found), "the cluster is what holds"
    row = next(line for line in shown(written(tmp_path), "--effective").splitlines() if line.strip().startswith("router.retention "))
    assert row.split() == ["router.retention", "default", "1d"]


def test_errors_are_said_and_nothing_is_shown(tmp_path):
    config = tmp_path / "tocsin.yaml"
    config.write_text("transport: {journal: data}\nroute: {receiver: nobody}\nrooter: {}\n")
    code, out, err = run_cli("config", "show", config)
    assert code == 3 and out == "" and 'did you mean "router"?' in err, err
