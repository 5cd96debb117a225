"""The message about a failed job has the last lines of the failure: a real script, real Kafka, a mail and a Slack message, read whole."""
import html
import os
import re
import subprocess
import sys
import uuid

import pytest

from tests.fakes.slack import Slack
from tests.support.hook_support import PACKAGE, wait_for
from tests.support.smtp_receiver import SmtpReceiver

CONFIG = """
transport: {{kafka: {{bootstrap.servers: '{brokers}'}}}}
topics: {{prefix: {prefix}, partitions: 1}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s}}
receivers:
  people:
    slack: {{url_file: {folder}/slack, allow_private: [127.0.0.0/8]}}
    email: {{to: [ops@example.com], host: 127.0.0.1, port: {port}, tls: none}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import os
import tocsin

hook = tocsin.watch(run="r", job="mortal")


def read(name):
    token = os.environ["TRAINING_TOKEN"]
    return {"labels": token}[name]


def load(step):
    try:
        return read("images")
    except KeyError as error:
        raise ValueError(f"batch {step} has no images\\nfile: `part-3`\\n<!channel> <b>") from error


def train():
    for step in range(20):
        hook.log(loss=1.0)
        hook.step()
        if step == 10:
            load(step)


train()
"""


def line_of(text):
    return next(number for number, line in enumerate(SCRIPT.splitlines(), 1) if text in line)


@pytest.fixture(scope="module")
def told(kafka, tmp_path_factory):
    """(the script's stderr, Slack's message as people read it, the mail)"""
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("last-lines")
    with Slack() as slack, SmtpReceiver() as smtp:
        smtp.accept()
        (folder / "slack").write_text(slack.url + "\n")
        config = folder / "tocsin.yaml"
        config.write_text(CONFIG.format(brokers=kafka, prefix=f"last{uuid.uuid4().hex[:8]}", folder=folder, port=smtp.port))
        server = Server(config)
        try:
            server.wait_for("ready")
            (folder / "train.py").write_text(SCRIPT)
            done = subprocess.run([sys.executable, str(folder / "train.py")], cwd=folder, timeout=120, capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": PACKAGE, "TOCSIN_CONFIG": str(config), "TRAINING_TOKEN": "sesame-open"})
            assert done.returncode == 1, done.stderr
            wait_for(lambda: slack.messages, 60)
            mail = smtp.wait(1)[0]
            assert not slack.refused, slack.refused
            yield done.stderr, slack.text_of(slack.messages[0]), mail
        finally:
            if server.process.poll() is None:
                server.kill()


WANTED = f"""file: 'part-3'
<!channel> <b>
Caused by KeyError: 'images' (train.py:{line_of('return {"labels"')} in read)
Traceback (most recent call last):
  train.py:{SCRIPT.splitlines().index("train()") + 1} in <module>
  train.py:{line_of("            load(step)")} in train
  train.py:{line_of("raise ValueError")} in load"""


def test_slack_shows_the_last_lines_and_mentions_nobody(told):
    _, text, _ = told
    print(text)
    assert f"mortal failed with exit code 1: ValueError: batch 10 has no images (train.py:{line_of('raise ValueError')} in load) (worker_0)." in text
    assert f"*Last lines*\n```{WANTED}```" in text


def test_the_mail_shows_them_as_text_and_as_a_page(told):
    _, _, mail = told
    print(mail["body"])
    indented = "\n".join(f"  {line}" for line in WANTED.replace("'part-3'", "`part-3`").splitlines())
    assert f"\nLast lines\n{indented}\n" in mail["body"].replace("\r\n", "\n")
    shown = re.search(r"Last lines</span><code>(.*?)</code>", mail["html"].replace("\r\n", "\n"), re.S)[1]
    assert html.unescape(shown) == WANTED.replace("'part-3'", "`part-3`") and "<b>" not in shown


def test_values_and_source_stay_on_the_machine_and_stderr_is_pythons_own(told):
    stderr, text, mail = told
    for shown in (text, mail["raw"]):
        assert "sesame" not in shown and "os.environ" not in shown and "raise ValueError" not in shown
    assert 'raise ValueError(f"batch {step}' in stderr and stderr.rstrip().endswith("<!channel> <b>")  # the traceback as Python prints it
