"""People who asked for it hear of silences: over a real server, in a chat."""
import json

import pytest

from tests.fakes.slack_bot import SlackBot
from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, scalar

CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route:
  receiver: board
  group_wait: 0s
{notices}
receivers:
  board: {{publish_metric: {{}}}}
  leads: {{slack: {{url: '{slack}', token_file: {folder}/bot, channel: '#training', allow_private: [127.0.0.0/8]}}}}
http: {{listen: '127.0.0.1:0'}}
"""

BY = {"a route": """  routes:
    - {matchers: [rule=silence_notice], receiver: leads, group_by: [silence], group_wait: 0s, group_interval: 1s}""",
      "the key": """  routes: [{matchers: ['rule=~".*"'], receiver: board}]
router: {silence_notices: leads}"""}


@pytest.mark.parametrize("by", BY)
def test_the_begin_and_the_end_of_a_silence_are_told_in_one_message(server, tmp_path, by):
    with SlackBot() as slack:
        (tmp_path / "bot").write_text(slack.token + "\n")
        (tmp_path / "bot").chmod(0o600)
        config = tmp_path / "t.yaml"
        config.write_text(CONFIG.format(folder=tmp_path, slack=slack.url, notices=BY[by]))
        program = server(config)
        program.wait_for("ready")
        JournalWriter(tmp_path / "journal").append(*[scalar("digits", "loss", "NaN" if step >= 3 else 1.0, step, job="digits") for step in range(5)])
        assert wait_for(lambda: "NaN" in run_cli("issues", "list", "-c", config)[1], 30)
        code, out, err = run_cli("silence", "add", "job=digits", "--for", "2h", "--comment", "new data", "--author", "ada", "-c", config)
        assert code == 0, out + err
        assert wait_for(lambda: slack.messages, 40), program.events[-5:]
        [message] = slack.messages
        begun = slack.text_of(message)
        print(begun)
        assert '[info] {job="digits"} is silenced until' in begun and "By ada: new data." in begun, begun
        assert "When it began, it hid 1 issue: digits, exploding_tensor." in begun and "tocsin silence expire sil_" in begun, begun

        silence = begun[begun.index("expire sil_") + 7:].split()[0]
        assert run_cli("silence", "expire", silence, "-c", config)[0] == 0
        assert wait_for(lambda: message.get("edited"), 40), slack.shown()
        over = slack.text_of(message)
        print(over)
        assert '[resolved] {job="digits"} was silenced' in over and "1 issue that it matched fires now: digits, exploding_tensor." in over, over
        assert len(slack.messages) == 1 and not slack.refused, (slack.shown(), slack.refused)


def test_check_knows_the_receiver_of_notices(tmp_path):
    config = tmp_path / "t.yaml"
    text = """
transport: {journal: data}
rules: [exploding_tensor]
route: {receiver: board}
receivers: {board: {publish_metric: {}}, leads: {publish_metric: {}}}
router: {silence_notices: RECEIVER}
"""
    config.write_text(text.replace("RECEIVER", "leeds"))
    code, out, err = run_cli("check", config)
    assert code == 3 and ':6:27: error: there is no receiver "leeds"; did you mean "leads"?' in out + err, out + err
    config.write_text(text.replace("RECEIVER", "leads"))
    code, out, err = run_cli("check", config)
    assert code == 0 and "unused" not in out + err, out + err
    config.write_text(text.replace("RECEIVER", "leads").replace("route: {receiver: board}\n", ""))
    code, out, err = run_cli("check", config)
    assert code == 3 and "needs a `route`" in out + err, out + err
    code, out, _ = run_cli("routes", "tree", "-c", config)
    assert code == 3
    config.write_text(text.replace("RECEIVER", "leads"))
    code, out, _ = run_cli("routes", "test", "rule=silence_notice", "silence=x", "--expect", "leads", "-c", config)
    assert code == 0 and "silence_notices" in out, out


def test_the_key_changes_no_identity_of_another_route(tmp_path):
    """Else every open incident would be closed and announced again."""
    def ids(name, more):
        config = tmp_path / name
        config.write_text("""
transport: {journal: data}
rules: [exploding_tensor]
route:
  receiver: board
  routes:
    - {matchers: [severity=error], routes: [{matchers: ['team=~"a|b"']}, {id: mine, matchers: [team=c], routes: [{matchers: [job=x]}]}]}
    - {matchers: [severity=info], continue: true}
receivers: {board: {publish_metric: {}}, leads: {publish_metric: {}}}
""" + more)
        code, out, err = run_cli("routes", "tree", "-o", "json", "-c", config)
        assert code == 0, out + err
        return [one["id"] for one in json.loads(out)]
    without, with_key = ids("a.yaml", ""), ids("b.yaml", "router: {silence_notices: leads}\n")
    assert len(without) == 6 and with_key == [without[0], "silence_notices", *without[1:]], (without, with_key)
