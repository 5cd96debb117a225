"""Writes a wheel (packaging.python.org, binary distribution format): a zip with RECORD, the same bytes for the same content."""
import base64
import hashlib
import os
import pathlib
import time
import zipfile


class WheelFile:
    """One wheel that is being written into `folder`; add(), then close() gives its path."""

    def __init__(self, folder, name, version, tag, metadata):
        self._stem = f"{name}-{version}"
        self.path = pathlib.Path(folder) / f"{self._stem}-{tag}.whl"
        self._zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
        self._date = time.gmtime(max(seconds, 315532800))[:6]  # a zip begins in 1980
        self._record = []
        self._info = f"{self._stem}.dist-info"
        self.add_info("METADATA", metadata)
        self.add_info("WHEEL", f"Wheel-Version: 1.0\nGenerator: tocsin tools/wheel\nRoot-Is-Purelib: false\nTag: {tag}\n")

    def add_info(self, name, text):
        self.add(f"{self._info}/{name}", text.encode())

    def add(self, name, data, executable=False):
        entry = zipfile.ZipInfo(name, self._date)
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        name = f"{self._info}/RECORD"
        entry = zipfile.ZipInfo(name, self._date)
        entry.external_attr = 0o100644 << 16
        self._zip.writestr(entry, "\n".join([*self._record, f"{name},,", ""]))
        self._zip.close()
        return self.path
