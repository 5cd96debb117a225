"""A control plane of Kubernetes on loopback: etcd, kube-apiserver (RBAC, TLS) and the controllers of jobs and garbage. No node: a test is the
kubelet. tools/kubernetes builds the programs.
"""
import base64
import contextlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

ADMIN = "canary-admin-token"
ISSUER = "https://kubernetes.default.svc"
CONTROLLERS = "job-controller,garbage-collector-controller,serviceaccount-controller"
PATCH = "application/merge-patch+json"


class Refused(Exception):
    """What the API server answered instead of 2xx."""

    def __init__(self, code, body):
        super().__init__(f"{code}: {body}")
        self.code, self.body = code, body


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def openssl(*arguments, **options):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, **options).stdout


def make_authority(folder, name):
    """A certificate authority: (certificate, key)."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", key, "-out", certificate)
    return certificate, key


def make_certificate(folder, authority):
    """Of a server on 127.0.0.1: (certificate, key)."""
    key, request, certificate, more = (folder / f"server.{end}" for end in ("key", "csr", "crt", "ext"))
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kube-apiserver", "-keyout", key, "-out", request)
    more.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl("x509", "-req", "-in", request, "-CA", authority[0], "-CAkey", authority[1], "-CAcreateserial", "-days", "2", "-extfile", more,
            "-out", certificate)
    return certificate, key


class ControlPlane:
    def __init__(self, folder, programs):
        self.folder, self.programs = pathlib.Path(folder), pathlib.Path(programs)
        self._running = []

    # ---- its life

    def start(self):
        authority = make_authority(self.folder, "authority")
        self.ca = authority[0]
        certificate, key = make_certificate(self.folder, authority)
        self.account_key = self.folder / "accounts.key"
        openssl("genrsa", "-out", self.account_key, "2048")
        (self.folder / "tokens.csv").write_text(f'{ADMIN},admin,admin,"system:masters"\n')
        etcd, peers, port = free_port(), free_port(), free_port()
        self.url = f"https://127.0.0.1:{port}"
        self.context = ssl.create_default_context(cafile=str(self.ca))
        self._run("etcd", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level", "error",
                  "--listen-client-urls", f"http://127.0.0.1:{etcd}", "--advertise-client-urls", f"http://127.0.0.1:{etcd}",
                  "--listen-peer-urls", f"http://127.0.0.1:{peers}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers}",
                  "--initial-cluster", f"default=http://127.0.0.1:{peers}")
        self._run("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1", f"--secure-port={port}",
                  "--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/24",
                  f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", "--authorization-mode=RBAC",
                  f"--token-auth-file={self.folder}/tokens.csv", f"--service-account-issuer={ISSUER}",
                  f"--service-account-key-file={self.account_key}", f"--service-account-signing-key-file={self.account_key}")
        self._wait(lambda: self.ask("GET", "/readyz", text=True) == "ok", "kube-apiserver is not ready", 120)
        kubeconfig = self.folder / "controllers.yaml"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "own",
            "clusters": [{"name": "own", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": "own", "user": {"token": ADMIN}}],
            "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}]}))
        self._run("kube-controller-manager", f"--kubeconfig={kubeconfig}", "--leader-elect=false", f"--controllers={CONTROLLERS}",
                  f"--secure-port={free_port()}", "--bind-address=127.0.0.1", f"--cert-dir={self.folder}/controllers",
                  f"--service-account-private-key-file={self.account_key}")
        return self

    def stop(self):
        for one in reversed(self._running):
            one.kill()
            one.wait(20)

    def _run(self, name, *arguments):
        with open(self.folder / f"{name}.log", "wb") as log:
            self._running.append(subprocess.Popen([self.programs / name, *map(str, arguments)], stdout=log, stderr=log,
                                                  env={**os.environ, "GOMAXPROCS": "2"}))

    def _wait(self, holds, problem, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if holds():
                    return
            except (OSError, Refused):
                pass
            for one in self._running:
                assert one.poll() is None, f"{one.args[0]} ended with {one.returncode}; its log lies in {self.folder}"
            time.sleep(0.2)
        raise AssertionError(problem)

    # ---- what an administrator does

    def ask(self, method, path, body=None, kind="application/json", token=ADMIN, text=False):
        """The answer's JSON; raises Refused."""
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(), method=method,
                                         headers={"Authorization": f"Bearer {token}", "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.context) as answer:
                said = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode()) from None
        return said if text else json.loads(said)

    def namespace(self, name):
        return self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def apply(self, one):
        """Creates an object of RBAC."""
        space, plural = one["metadata"]["namespace"], one["kind"].lower() + "s"
        return self.ask("POST", f"/apis/{one['apiVersion']}/namespaces/{space}/{plural}", one)

    def account(self, space, name):
        """A service account; its token, as a pod gets it."""
        self.ask("POST", f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": name}})
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        return self.ask("POST", f"/api/v1/namespaces/{space}/serviceaccounts/{name}/token", asked)["status"]["token"]

    def expired(self, token):
        """The same token, as it would be an hour after its time: signed by the cluster's own key."""
        def part(raw):
            return base64.urlsafe_b64encode(raw).rstrip(b"=")

        def unpacked(text):
            return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

        head, claims, _ = token.split(".")
        claims, now = unpacked(claims), int(time.time())
        claims.update(iat=now - 7200, nbf=now - 7200, exp=now - 3600)
        signed = head.encode() + b"." + part(json.dumps(claims).encode())
        return (signed + b"." + part(openssl("dgst", "-sha256", "-sign", self.account_key, input=signed))).decode()

    def define(self, group, version, kind, spec, status, more_versions=()):
        """A CustomResourceDefinition with these schemas, and the status as a subresource."""
        plural = kind.lower() + "s"
        schema = {"type": "object", "properties": {"spec": spec, "status": status}}
        versions = [{"name": name, "served": True, "storage": name == version, "schema": {"openAPIV3Schema": schema},
                     "subresources": {"status": {}}} for name in (version, *more_versions)]
        self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": versions}})
        for name in (version, *more_versions):
            self._wait(lambda name=name: self.ask("GET", f"/apis/{group}/{name}/namespaces/default/{plural}"), f"{kind} is not served", 30)

    @contextlib.contextmanager
    def without(self, group, kind):
        """A kind is taken away for a while."""
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.lower()}s.{group}"
        kept = self.ask("GET", path)
        self.ask("DELETE", path)
        self._wait(lambda: self._is_gone(path), f"{kind} is still there", 30)
        try:
            yield
        finally:
            self.ask("POST", path.rpartition("/")[0], {**kept, "status": None, "metadata": {"name": kept["metadata"]["name"]}})
            version = kept["spec"]["versions"][0]["name"]
            self._wait(lambda: self.ask("GET", f"/apis/{group}/{version}/namespaces/default/{kind.lower()}s"), f"{kind} is not served", 30)

    def _is_gone(self, path):
        try:
            self.ask("GET", path)
        except Refused as refused:
            return refused.code == 404
        return False

    # ---- what a node does

    def node(self, name):
        self.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}})

    def run_pods(self, space, node, selector):
        """Waits for the pods of this label, and runs them on the node."""
        path = f"/api/v1/namespaces/{space}/pods"
        listed = f"{path}?labelSelector={selector}"
        self._wait(lambda: self.ask("GET", listed)["items"], f"no pods of {selector}", 60)
        names = [one["metadata"]["name"] for one in self.ask("GET", listed)["items"]]
        for name in names:
            self.ask("POST", f"{path}/{name}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                                                        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
            self.ask("PATCH", f"{path}/{name}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, PATCH)
        return names

    def end_pod(self, space, name):
        """Its containers have ended: the kubelet takes it away."""
        self.ask("DELETE", f"/api/v1/namespaces/{space}/pods/{name}", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
