"""The demo shows a mail as it was sent, and what it leaves out has a mark."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "lib"))

from demo_mail import mail_in_short, next_command  # noqa: E402

SUBJECT = "[error] digits: loss is NaN since step 186 – stopped, checkpoint saved"
BODY = SUBJECT + """

loss became NaN at train step 186.

Next
  # Show this issue
  tocsin issues show iss_1 --from /data
  tocsin status r --from /data

--\x20
Sent by Tocsin
"""


def test_the_subject_stands_once_and_the_signature_not():
    assert mail_in_short(SUBJECT, BODY) == [
        "Subject: " + SUBJECT, "", "loss became NaN at train step 186.", "", "Next", "  # Show this issue",
        "  tocsin issues show iss_1 --from /data", "  tocsin status r --from /data"]


def test_a_cut_has_a_mark():
    assert mail_in_short(SUBJECT, BODY, lines=2)[-2:] == ["", "…"]


def test_the_next_command_is_the_first_that_the_mail_offers():
    assert next_command(BODY) == "tocsin issues show iss_1 --from /data"
    assert next_command("nothing") is None
