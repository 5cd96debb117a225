"""Amazon SNS: Publish, to a topic or to a telephone.

Contract: docs.aws.amazon.com, SNS API reference, "Publish" (parameters, limits, errors), "Amazon SNS message attributes"; the signature as
tests/fakes/aws_signature.py checks it.
"""
import re
import urllib.parse

from tests.fakes.aws_signature import signature_problem
from tests.fakes.far_side import FarSide, Refused
from tests.fakes.twilio import segments

ATTRIBUTE = re.compile(r"MessageAttributes\.entry\.(\d+)\.(Name|Value\.DataType|Value\.StringValue)")
PLAIN = {"Action", "Version", "TopicArn", "PhoneNumber", "Message", "Subject", "MessageDeduplicationId", "MessageGroupId"}


class Sns(FarSide):
    """`messages` are what was published: {TopicArn or PhoneNumber, Message, Subject, attributes, …}."""

    region, access_key_id = "eu-central-1", "AKIDEXAMPLE"
    topic = "arn:aws:sns:eu-central-1:123456789012:alarms.fifo"

    @property
    def secret_access_key(self):
        return self.secret + "-aws"

    @staticmethod
    def _error(status, code, why):
        return Refused(status, f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{why}</Message></Error></ErrorResponse>", why)

    def answer(self, method, path, query, headers, body):
        problem = signature_problem(method, path, headers, body, service="sns", region=self.region, access_key_id=self.access_key_id,
                                    secret_access_key=self.secret_access_key)
        if problem:
            raise self._error(403, problem.split(":")[0], problem)
        if (method, path) != ("POST", "/") or not headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            raise self._error(400, "InvalidAction", f"{method} {path}")
        form = dict(urllib.parse.parse_qsl(body.decode("ascii"), strict_parsing=True, errors="strict"))
        message = {name: value for name, value in form.items() if name in PLAIN}
        message["attributes"] = self._attributes({name: value for name, value in form.items() if name not in PLAIN})
        if (message.get("Action"), message.get("Version")) != ("Publish", "2010-03-31"):
            raise self._error(400, "InvalidAction", "Action")
        if ("TopicArn" in message) == ("PhoneNumber" in message):
            raise self._error(400, "InvalidParameter", "Invalid parameter: one of TopicArn and PhoneNumber")
        if not 0 < len(message["Message"].encode()) <= 262_144:
            raise self._error(400, "InvalidParameter", "Invalid parameter: Message too long")
        (self._telephone if "PhoneNumber" in message else self._topic)(message)
        self.messages.append(message)
        return 200, f"<PublishResponse><PublishResult><MessageId>m-{len(self.messages)}</MessageId></PublishResult></PublishResponse>"

    def _attributes(self, form):
        out = {}
        for name, value in form.items():
            match = ATTRIBUTE.fullmatch(name)
            if not match or not value:
                raise self._error(400, "InvalidParameter", f"Invalid parameter: {name}")
            out.setdefault(match[1], {})[match[2]] = value
        if [*out] != [str(i + 1) for i in range(len(out))] or any(set(one) != {"Name", "Value.DataType", "Value.StringValue"} for one in out.values()):
            raise self._error(400, "InvalidParameter", "Invalid parameter: MessageAttributes")
        if any(one["Value.DataType"] != "String" for one in out.values()):
            raise self._error(400, "InvalidParameter", "Invalid parameter: DataType")
        return {one["Name"]: one["Value.StringValue"] for one in out.values()}

    def _telephone(self, message):
        if not re.fullmatch(r"\+[1-9]\d{6,14}", message["PhoneNumber"]):
            raise self._error(400, "InvalidParameter", f"Invalid parameter: PhoneNumber Reason: {message['PhoneNumber']} is not valid to publish to")
        if segments(message["Message"]) > 2:
            raise self._error(400, "InvalidParameter", f"{segments(message['Message'])} segments")  # ours: a text is at most two
        if message["attributes"].get("AWS.SNS.SMS.SMSType") not in ("Transactional", "Promotional"):
            raise self._error(400, "InvalidParameter", "Invalid parameter: SMSType")

    def _topic(self, message):
        if message["TopicArn"] != self.topic:
            raise self._error(404, "NotFound", "Topic does not exist")
        subject = message.get("Subject", "x")
        if len(subject) >= 100 or not all(" " <= c <= "~" for c in subject):
            raise self._error(400, "InvalidParameter", "Invalid parameter: Subject")
        for name in ("MessageGroupId", "MessageDeduplicationId"):
            if not re.fullmatch(r"[!-~]{1,128}", message.get(name, "")):
                raise self._error(400, "InvalidParameter", f"Invalid parameter: {name}")
        if any(one.get("MessageDeduplicationId") == message["MessageDeduplicationId"] for one in self.messages):
            raise self._error(400, "Dropped", "a repeat: SNS would drop it silently")

    def text_of(self, message):
        return f"to {message.get('PhoneNumber', message.get('TopicArn'))}: {message.get('Subject', '')}\n{message['Message']}"
