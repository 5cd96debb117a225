"""A file system with Python and the C library and nothing of the build: what a user's machine has.

Made of the files of a few Debian packages, entered by chroot in a user and mount namespace of its own."""
import glob
import os
import pathlib
import shutil
import subprocess
import sys

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
BASE = ["libc6", "libgcc-s1", f"{PYTHON}-minimal", f"lib{PYTHON}-minimal", f"lib{PYTHON}-stdlib", "zlib1g", "libexpat1", "libffi8"]
# Of the program: what auditwheel leaves to the system.
CXX = ["libstdc++6"]

_ENTER = """
mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" || exit 125
root=$1; shift
exec /usr/sbin/chroot "$root" "$@"
"""


class CleanRoot:
    def __init__(self, folder, packages):
        self.path = pathlib.Path(folder)
        for name in ("proc", "dev", "tmp", "root", "usr/bin", "usr/lib", "usr/lib64", "etc"):
            (self.path / name).mkdir(parents=True)
        for name in ("bin", "lib", "lib64"):
            (self.path / name).symlink_to(f"usr/{name}")
        for package in packages:
            for file in subprocess.run(["dpkg", "-L", package], check=True, text=True, capture_output=True).stdout.splitlines():
                self._take(file)
        (self.path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="ascii")

    def _take(self, file):
        if file.startswith(("/usr/share/doc", "/usr/share/man", "/usr/share/lintian")) or (os.path.isdir(file) and not os.path.islink(file)):
            return
        # /lib is a link to /usr/lib, and packages were registered under either.
        place = file if file.startswith(("/usr/", "/etc/")) else f"/usr{file}"
        target = self.path / place.lstrip("/")
        if os.path.lexists(file) and not os.path.lexists(target) and not file.startswith("/var/"):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target, follow_symlinks=False)

    def put(self, file, where="/"):
        target = self.path / where.lstrip("/") / pathlib.Path(file).name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
        return "/" + str(target.relative_to(self.path))

    def command(self, *command):
        """The command line that runs `command` inside."""
        return ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c", _ENTER, "sh", str(self.path), *command]

    def run(self, *command, timeout=120, **options):
        environment = {"PATH": "/venv/bin:/usr/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(self.command(*command), text=True, capture_output=True, timeout=timeout, check=False,
                              env={**environment, **options.pop("env", {})}, **options)

    def start(self, *command, log, env=None):
        environment = {"PATH": "/venv/bin:/usr/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", **(env or {})}
        return subprocess.Popen(self.command(*command), env=environment, stdout=log, stderr=subprocess.STDOUT)


def pip_of_debian():
    """pip as a file that an interpreter can run, of the package that python3-venv brings."""
    (found,) = glob.glob("/usr/share/python-wheels/pip-*.whl")
    return found
