"""Fetches the repositories of the list, each at its pinned commit, into a folder outside this repository.

    python bench/detection/programs/fetch.py [--cache DIR] [--mirror DIR]

`--mirror`: a folder of bare repositories, `OWNER+NAME/repo` or `OWNER/NAME.git`, instead of the network. What a mirror lacks of a commit is named;
the rest is checked out."""
import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))

from bench.detection.programs import listing  # noqa: E402


def cache():
    """Where programs lie unless said otherwise."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tocsin" / "programs"


def _git(folder, *arguments, check=True):
    done = subprocess.run(["git", "-C", str(folder), *arguments], text=True, capture_output=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"git {arguments[0]} in {folder}: {done.stderr.strip()[-400:]}")
    return done


def _of_mirror(mirror, url):
    owner, name = url.rstrip("/").split("/")[-2:]
    for path in (mirror / f"{owner}+{name}" / "repo", mirror / owner / f"{name}.git"):
        if path.is_dir():
            return path.resolve()
    raise RuntimeError(f"{mirror} holds no copy of {owner}/{name}")


def fetch(name, repository, target, mirror=None):
    """Checks out what the list needs of a repository; returns how many files its source lacked."""
    folder = target / name
    if not (folder / ".git").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _git(folder, "init", "-q")
        _git(folder, "remote", "add", "origin", str(_of_mirror(mirror, repository["url"]) if mirror else repository["url"]))
    _git(folder, "sparse-checkout", "set", "--no-cone", *repository["folders"])
    if mirror:  # objects are read where they lie: an incomplete copy cannot be cloned
        objects = _of_mirror(mirror, repository["url"]) / "objects"
        (folder / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    elif _git(folder, "cat-file", "-e", f"{repository['commit']}^{{commit}}", check=False).returncode != 0:
        _git(folder, "fetch", "-q", "--depth", "1", "--filter=blob:none", "origin", repository["commit"])
    _git(folder, "checkout", "-q", "-f", repository["commit"], check=False)
    if _git(folder, "rev-parse", "HEAD", check=False).stdout.strip() != repository["commit"]:
        _git(folder, "update-ref", "--no-deref", "HEAD", repository["commit"])
        _git(folder, "checkout", "-q", "-f", "HEAD", "--", ".", check=False)
    return len(_git(folder, "ls-files", "--deleted").stdout.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=cache(), help="folder of the programs")
    parser.add_argument("--mirror", type=pathlib.Path, help="folder of bare repositories to copy from")
    chosen = parser.parse_args()
    for name, repository in listing.read()["repositories"].items():
        lacking = fetch(name, repository, chosen.cache, chosen.mirror)
        print(f"{name}: {repository['commit'][:12]}{f', {lacking} files are missing' if lacking else ''}", flush=True)


if __name__ == "__main__":
    main()
