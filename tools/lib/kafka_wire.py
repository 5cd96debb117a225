"""The few Kafka requests that our tools and tests need: metadata (is it up?), topics made and deleted.

This is a client of a few lines for scripts that must run before anything is built. The product
itself speaks to Kafka through librdkafka only.
"""

import socket
import struct
import time

METADATA, CREATE_TOPICS, DELETE_TOPICS = 3, 19, 20
TOPIC_ALREADY_EXISTS = 36


class WireError(Exception):
    """The broker could not be reached, or refused the request."""


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        size = struct.calcsize(">" + form)
        if self.at + size > len(self.data):
            raise WireError("short answer")
        (value,) = struct.unpack_from(">" + form, self.data, self.at)
        self.at += size
        return value

    def text(self):
        size = self.take("h")
        if size < 0:
            return None
        value = self.data[self.at : self.at + size].decode()
        self.at += size
        return value

    def array(self, read):
        return [read() for _ in range(max(0, self.take("i")))]


def _text(value):
    if value is None:
        return struct.pack(">h", -1)
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def _receive(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise WireError("connection closed")
        data += piece
    return data


def request(address, api, version, body, timeout=5.0):
    """Send one request on a connection of its own and return a reader over the answer."""
    host, port = address.rsplit(":", 1)
    header = struct.pack(">hhi", api, version, 1) + _text("tocsin-tools")
    try:
        with socket.create_connection((host, int(port)), timeout=timeout) as connection:
            connection.settimeout(timeout)
            message = header + body
            connection.sendall(struct.pack(">i", len(message)) + message)
            (size,) = struct.unpack(">i", _receive(connection, 4))
            answer = _Reader(_receive(connection, size))
    except OSError as error:
        raise WireError(f"{address}: {error}") from error
    answer.take("i")  # correlation id
    return answer


def metadata(address, topics=(), timeout=5.0):
    """{brokers: {id: "host:port"}, topics: {name: {partition: leader}}}; missing topics are left out."""
    body = struct.pack(">i", len(topics)) + b"".join(_text(name) for name in topics)
    answer = request(address, METADATA, 1, body, timeout)
    brokers = {}
    for _ in range(answer.take("i")):
        node, host, port = answer.take("i"), answer.text(), answer.take("i")
        answer.text()  # rack
        brokers[node] = f"{host}:{port}"
    answer.take("i")  # controller
    found = {}
    for _ in range(answer.take("i")):
        error, name = answer.take("h"), answer.text()
        answer.take("b")  # internal
        leaders = {}
        for _ in range(answer.take("i")):
            answer.take("h")  # a partition without a leader shows in the leader field
            partition, leader = answer.take("i"), answer.take("i")
            answer.array(lambda: answer.take("i"))
            answer.array(lambda: answer.take("i"))
            leaders[partition] = leader
        if error == 0:
            found[name] = leaders
    return {"brokers": brokers, "topics": found}


def create_topic(address, name, partitions=1, replication=1, config=None, timeout=15.0):
    """Create a topic and wait until each partition has a leader. An existing topic is left as it is."""
    configs = b"".join(_text(key) + _text(str(value)) for key, value in (config or {}).items())
    body = (
        struct.pack(">i", 1)
        + _text(name)
        + struct.pack(">ihi", partitions, replication, 0)
        + struct.pack(">i", len(config or {}))
        + configs
        + struct.pack(">ib", int(timeout * 1000), 0)
    )
    answer = request(address, CREATE_TOPICS, 2, body, timeout)
    answer.take("i")  # throttle
    for _ in range(answer.take("i")):
        topic, error, message = answer.text(), answer.take("h"), answer.text()
        if error not in (0, TOPIC_ALREADY_EXISTS):
            raise WireError(f"topic {topic}: error {error}: {message}")
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        leaders = metadata(address, [name])["topics"].get(name, {})
        if leaders and all(leader >= 0 for leader in leaders.values()):
            return
        time.sleep(0.02)
    raise WireError(f"topic {name}: no leaders within {timeout:.0f} s")


def delete_topic(address, name, timeout=15.0):
    """Delete a topic and wait until no broker names it any more."""
    body = struct.pack(">i", 1) + _text(name) + struct.pack(">i", int(timeout * 1000))
    answer = request(address, DELETE_TOPICS, 1, body, timeout)
    answer.take("i")  # throttle
    for _ in range(answer.take("i")):
        topic, error = answer.text(), answer.take("h")
        if error:
            raise WireError(f"topic {topic}: error {error}")
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if name not in metadata(address)["topics"]:
            return
        time.sleep(0.05)
    raise WireError(f"topic {name}: still there after {timeout:.0f} s")
