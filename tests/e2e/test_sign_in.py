"""HTTP actions sign in: a password, and OAuth2 tokens of a strict server. Nothing of them is shown."""
import json

import pytest

from tests.fakes.oauth2 import OAuth2
from tests.support.program import run_cli

CONFIG = """
transport: {{journal: {folder}/never-opened}}
rules: [exploding_tensor]
route: {{receiver: people}}
receivers:
  people:
    webhook: {{url: '{url}', allow_private: [127.0.0.0/8], {sign_in}}}
"""


@pytest.fixture
def server():
    with OAuth2() as out:
        yield out


def oauth2(server, folder, secret=None, more=""):
    path = folder / "client-secret"
    path.write_text((secret or server.secret) + "\n")
    return (f"oauth2: {{client_id: '{server.client_id}', client_secret_file: {path}, token_url: '{server.token_url}', "
            f"scopes: [{server.scope}]{more}}}")


def tried(server, folder, sign_in, *arguments):
    config = folder / "tocsin.yaml"
    config.write_text(CONFIG.format(folder=folder, url=server.url, sign_in=sign_in))
    code, out, err = run_cli("send-test", "people", *arguments, "-c", config, "--output", "json")
    assert out, err
    return code, json.loads(out)[0], out


@pytest.mark.parametrize("more", ["", ", credentials_in: body"])
def test_one_token_serves_several_messages_and_is_shown_to_nobody(server, tmp_path, more):
    code, trial, shown = tried(server, tmp_path, oauth2(server, tmp_path, more=more), "--drill")
    assert code == 0, trial
    assert server.refused == [] and len(server.messages) == 2
    assert [request["path"] for request in server.requests] == ["/token", "/hook", "/hook"]
    assert "canary" not in shown
    assert trial["steps"][0]["requests"][0]["answer"]["body"] == "<redacted>"


def test_a_wrong_secret_is_a_wrong_configuration_and_names_the_reason(server, tmp_path):
    code, trial, shown = tried(server, tmp_path, oauth2(server, tmp_path, secret="canary-wrong"))
    assert code == 1 and server.messages == []
    step = trial["steps"][0]
    assert (step["outcome"], step["code"]) == ("configuration", "oauth2")
    assert "invalid_client: unknown client" in step["detail"] and "canary" not in shown


def test_a_password_is_sent_and_not_shown(server, tmp_path):
    server.answer = lambda method, path, query, headers, body: (200, {"saw": headers["authorization"]})
    code, trial, shown = tried(server, tmp_path, "basic_auth: {username: ada, password: canary-password}")
    assert code == 0, trial
    assert server.requests[0]["headers"]["authorization"] == "Basic YWRhOmNhbmFyeS1wYXNzd29yZA=="
    assert "canary" not in shown and "YWRhOmNhbmFyeS1wYXNzd29yZA" not in shown
