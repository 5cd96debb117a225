"""Stands between Tocsin and a real API server: notes each request with its answer, and lets a test do something just before one."""
import urllib.error
import urllib.request

from tests.fakes.far_side import FarSide


class Between(FarSide):
    def __init__(self, cluster, before=None):
        super().__init__()
        self.cluster, self.before = cluster, before or {}

    def _answered(self, method, target, headers, raw):
        if method in self.before:
            self.before.pop(method)()
        kept = {name: value for name, value in headers.items() if name in ("authorization", "content-type", "accept")}
        request = urllib.request.Request(self.cluster.url + target, raw or None, method=method, headers=kept)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.cluster.context) as answer:
                return answer.status, {"Content-Type": "application/json"}, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, {"Content-Type": "application/json"}, error.read().decode()

    def asked(self, method):
        return [one["status"] for one in self.requests if one["method"] == method]
