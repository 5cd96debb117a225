"""Downloads jars that a lock file pins by version and checksum; needs no Maven."""

import concurrent.futures
import hashlib
import os
import pathlib
import shutil
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as xml

CENTRAL = "https://repo.maven.apache.org/maven2"


class DownloadError(Exception):
    """A jar could not be had, or is not the one that the lock file pins."""


def read_lock(path):
    """[(group, artifact, version, sha256)] from lines `group:artifact:version sha256`."""
    entries = []
    for line in pathlib.Path(path).read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            coordinates, checksum = line.split()
            entries.append((*coordinates.split(":"), checksum))
    return entries


def relative_path(group, artifact, version):
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


def base_url():
    """`MAVEN_REPO_URL`, else the user's Maven mirror of central, else Maven Central itself."""
    if os.environ.get("MAVEN_REPO_URL"):
        return os.environ["MAVEN_REPO_URL"].rstrip("/")
    return (_mirror_from_settings() or CENTRAL).rstrip("/")


def _mirror_from_settings():
    settings = pathlib.Path.home() / ".m2" / "settings.xml"
    try:
        root = xml.parse(settings).getroot()
    except (OSError, xml.ParseError):
        return None
    for element in root.iter():  # Maven's files come with and without a namespace
        element.tag = element.tag.rsplit("}", 1)[-1]
    for mirror in root.iter("mirror"):
        covered = [part.strip() for part in (mirror.findtext("mirrorOf") or "").split(",")]
        blocked = (mirror.findtext("blocked") or "").strip() == "true"
        if "!central" not in covered and {"*", "central", "external:*"} & set(covered) and not blocked:
            return (mirror.findtext("url") or "").strip() or None
    return None


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fetch_all(entries, folder, progress=lambda done, total: None):
    """Bring every jar of the lock into `folder`; each is verified before it gets its name."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [entry for entry in entries if not _jar(folder, entry).exists()]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(_fetch, entry, folder) for entry in missing]
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            job.result()
            progress(done, len(missing))
    return [_jar(folder, entry) for entry in entries]


def _jar(folder, entry):
    return folder / f"{entry[1]}-{entry[2]}.jar"


def _fetch(entry, folder):
    group, artifact, version, expected = entry
    target = _jar(folder, entry)
    partial = target.with_suffix(f".part{os.getpid()}")
    relative = relative_path(group, artifact, version)
    local = pathlib.Path.home() / ".m2" / "repository" / relative
    try:
        if local.exists() and sha256(local) == expected:
            shutil.copyfile(local, partial)
        else:
            _download(f"{base_url()}/{relative}", partial)
        found = sha256(partial)
        if found != expected:
            raise DownloadError(f"{relative}: sha256 is {found}, the lock file says {expected}")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def _download(url, target, attempts=3):
    for attempt in range(1, attempts + 1):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer, open(target, "wb") as file:
                shutil.copyfileobj(answer, file)
            return
        except (OSError, urllib.error.URLError) as error:
            if attempt == attempts:
                raise DownloadError(
                    f"{url}: {error}\n  set MAVEN_REPO_URL to a Maven repository that you can reach"
                ) from error
            time.sleep(attempt)
