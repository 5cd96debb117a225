"""The check of Signature Version 4 that fakes of AWS services make."""
import datetime

from tests.fakes.aws_signature import signature_problem

ACCOUNT = {"service": "iam", "region": "us-east-1", "access_key_id": "AKIDEXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
SIGNED = {"host": "iam.amazonaws.com", "content-type": "application/x-www-form-urlencoded; charset=utf-8", "x-amz-date": "20150830T123600Z",
          "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, "
                           "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"}
NOW = datetime.datetime(2015, 8, 30, 12, 37, tzinfo=datetime.timezone.utc)
TARGET = "/?Action=ListUsers&Version=2010-05-08"


def test_it_takes_the_example_of_the_documentation():
    assert signature_problem("GET", TARGET, SIGNED, b"", now=NOW, **ACCOUNT) is None


def test_it_refuses_another_body_query_header_secret_or_time():
    assert "does not match" in signature_problem("GET", TARGET, SIGNED, b"x", now=NOW, **ACCOUNT)
    assert "does not match" in signature_problem("GET", "/?Action=DeleteUser&Version=2010-05-08", SIGNED, b"", now=NOW, **ACCOUNT)
    assert "does not match" in signature_problem("GET", TARGET, {**SIGNED, "host": "evil.example"}, b"", now=NOW, **ACCOUNT)
    assert "not signed" in signature_problem("GET", TARGET, {**SIGNED, "x-amz-target": "A.B"}, b"", now=NOW, **ACCOUNT)
    assert "does not match" in signature_problem("GET", TARGET, SIGNED, b"", now=NOW, **{**ACCOUNT, "secret_access_key": "another"})
    assert "scoped to" in signature_problem("GET", TARGET, SIGNED, b"", now=NOW, **{**ACCOUNT, "service": "sns"})
    assert "five minutes" in signature_problem("GET", TARGET, SIGNED, b"", now=NOW + datetime.timedelta(hours=1), **ACCOUNT)
