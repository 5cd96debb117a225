"""Where Kafka's files lie that are kept between runs: jars, a formatted start state, an archive of loaded classes."""

import hashlib
import os
import pathlib
import re
import shutil
import sys

import maven

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCK_FILE = ROOT / "tools" / "kafka.lock"
JAVA_NEEDED = 17


class KafkaError(Exception):
    """Something that the caller should read; the program prints it and exits 1."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def entries():
    return maven.read_lock(LOCK_FILE)


def version():
    return next(entry[2] for entry in entries() if entry[1] == "kafka_2.13")


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home) / "tocsin" / "kafka" / version()


def java():
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None) or shutil.which("java")
    if not found:
        raise KafkaError("no Java found; run: tools/setup kafka")
    release = pathlib.Path(found).resolve().parents[1] / "release"
    text = release.read_text() if release.exists() else ""
    stated = re.search(r'JAVA_VERSION="(\d+)', text)
    if stated and int(stated.group(1)) < JAVA_NEEDED:
        raise KafkaError(f"{found} is Java {stated.group(1)}; Kafka {version()} needs {JAVA_NEEDED}")
    return found


def class_path():
    # The order is part of what the class archive is checked against.
    return ":".join(str(cache() / "jars" / f"{a}-{v}.jar") for _, a, v, _ in sorted(entries()))


def class_archive():
    """One archive per Java build: it is useless to any other."""
    machine = pathlib.Path(java()).resolve().parents[1] / "lib" / "server" / "libjvm.so"
    state = machine.stat() if machine.exists() else None
    identity = f"{machine}:{state.st_size}:{state.st_mtime_ns}" if state else java()
    return cache() / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.jsa"
