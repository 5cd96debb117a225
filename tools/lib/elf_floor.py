"""What a built library asks of the system it is loaded on, read with objdump and readelf."""
import re
import subprocess

FLOOR = (2, 34)  # RHEL 9; Ubuntu 22.04 has 2.35
# The C library's own files, and libgcc's, which must be one per process for exceptions to pass.
SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def _run(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def needed(path):
    """Libraries that it is linked with."""
    return set(re.findall(r"\(NEEDED\).*\[(.+?)\]", _run("readelf", "-dW", str(path))))


def dynamic(path):
    """(undefined, defined) symbols of its dynamic table, the former as (name, version)."""
    undefined, defined = set(), set()
    for line in _run("readelf", "--dyn-syms", "-W", str(path)).splitlines():
        row = line.split()
        if len(row) < 8 or not row[0].rstrip(":").isdigit() or row[3] not in ("FUNC", "OBJECT", "NOTYPE", "TLS", "GNU_IFUNC", "UNIQUE", "LOOS+10"):
            continue
        name, _, version = row[7].partition("@")
        if row[6] == "UND":
            undefined.add((name, version.lstrip("@")))
        elif row[6] != "ABS":
            defined.add(name)
    return undefined, defined


def problems(path, shown, floor=FLOOR):
    """Why the library could not be loaded elsewhere or would meet others of the process; empty: it is fine. `shown`: what it may show."""
    undefined, defined = dynamic(path)
    out = [f"needs {library}" for library in sorted(needed(path) - SYSTEM)]
    for name, version in sorted(undefined):
        numbers = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if numbers and tuple(map(int, numbers.groups())) > floor:
            out.append(f"needs {name} of {version}, newer than {floor[0]}.{floor[1]}")
    out += [f"shows {name}" for name in sorted(defined - set(shown))]
    out += [f"does not show {name}" for name in sorted(set(shown) - defined)]
    return out


def shown_by(version_script):
    """The functions that a version script lists as global, in any of its versions."""
    listed = re.findall(r"global:(.*?)(?:local:|})", version_script, re.DOTALL)
    return set(re.findall(r"\w+", " ".join(listed)))
