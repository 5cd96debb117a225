#!/usr/bin/python3
"""An SMTP server on loopback that keeps each mail, and can be told to refuse, hang or answer 4xx/5xx.

As a library:  with SmtpReceiver() as smtp: ... smtp.wait(1)[0]["subject"]
As a program:  smtp_receiver.py [--port N]   prints PORT=N, then one JSON line per mail (receiver.py)
"""

import asyncio
import email
import email.policy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from aiosmtpd.controller import Controller  # noqa: E402

from tests.support import receiver  # noqa: E402


class SmtpReceiver(receiver.Receiver):
    """`answer(451)` and the like answer the mail's end; a code below 400 accepts the mail."""

    _controller = None

    def accept(self):
        if self._controller:
            return
        # Port 0 would be asked for again after refuse(): settle it once.
        self.port = self.port or receiver.free_port()
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, ready_timeout=20)
        self._controller.start()

    def refuse(self):
        if self._controller:
            self._controller.stop()
            self._controller = None

    async def handle_DATA(self, _server, session, envelope):  # noqa: N802  (aiosmtpd's name)
        message = email.message_from_bytes(envelope.original_content or envelope.content,
                                           policy=email.policy.default)
        body, html = message.get_body(("plain", "html")), message.get_body(("html",))
        answer = self.script.next()
        code = None if answer == receiver.HANG else 250 if answer == receiver.OK else answer[0]
        self.record(accepted=code is not None and code < 400, answer=code or answer, peer=session.peer[0],
                    sender=envelope.mail_from, to=envelope.rcpt_tos, subject=str(message["subject"]),
                    headers={key.lower(): str(value) for key, value in message.items()},
                    body=body.get_content() if body else "", html=html.get_content() if html else "",
                    raw=(envelope.original_content or envelope.content).decode("latin-1"))
        if answer == receiver.HANG:
            while not self.released.is_set():
                await asyncio.sleep(0.05)
        if code and code >= 400:
            return f"{code} {'try again later' if code < 500 else 'not accepted here'}"
        return "250 OK"


if __name__ == "__main__":
    receiver.run_as_program(lambda arguments, show: SmtpReceiver(arguments.port, show), __doc__)
