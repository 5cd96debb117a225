"""The list of public programs: programs.json, checked while it is read.

Each row is a program: `name`, `repository`, the paths of its `faulty` and `corrected` version (none: null), the `fault` in our words, the
`question` of docs/run-card.md that should see it (`none`: we see no fault), and `cannot`: why nobody here can run it."""
import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent
QUESTIONS = ("none", *(f"4.{at}" for at in range(1, 13)))
COMMIT = re.compile(r"[0-9a-f]{40}")
VERSIONS = ("faulty", "corrected")


def read(path=FOLDER / "programs.json"):
    """{repositories, digits, programs}."""
    return json.loads(pathlib.Path(path).read_text())


def problems(listed):
    """What is wrong with a list, one line each."""
    out = [f"{name}: no full commit" for name, one in listed["repositories"].items() if not COMMIT.fullmatch(one.get("commit", ""))]
    names = [one["name"] for one in listed["programs"]]
    out += [f"{name}: stands there twice" for name in sorted({name for name in names if names.count(name) > 1})]
    for one in listed["programs"]:
        if one["repository"] not in listed["repositories"]:
            out.append(f"{one['name']}: no repository {one['repository']}")
        if one["question"] not in QUESTIONS:
            out.append(f"{one['name']}: no question {one['question']}")
        if not one["fault"].strip() or not one["faulty"]:
            out.append(f"{one['name']}: no fault or no file")
        out += [f"{one['name']}: {path} leads out of its repository" for path in (one["faulty"], one["corrected"])
                if path and (path.startswith("/") or ".." in pathlib.PurePosixPath(path).parts)]
        if set(one) - {"name", "repository", "faulty", "corrected", "fault", "question", "cannot"}:
            out.append(f"{one['name']}: unknown fields")
    return out
