"""What the demo shows of a mail that Tocsin sent."""

LINES = 26


def mail_in_short(subject, body, lines=LINES):
    """The subject, then the text without its repetition of the subject, at most so many lines; a cut has a mark."""
    text = body.strip().splitlines()
    if text and text[0] == subject:
        text = text[1:]
    text = "\n".join(text).split("\n-- ")[0].strip().splitlines()
    shown = ["Subject: " + subject, "", *text[:lines]]
    return shown + ["…"] if len(text) > lines else shown


def next_command(body):
    """The first command that the mail offers; None where it offers none."""
    return next((line.strip() for line in body.splitlines() if line.strip().startswith("tocsin ")), None)
