"""bench/detection/programs: the list of public programs is whole and pinned, is fetched at its commits, and stands for what it says."""
import copy
import json
import pathlib
import subprocess
import types
import zipfile

import numpy
import pytest

from bench.detection.programs import digits, fetch, listing, old_python


def test_the_list_is_well_formed_and_every_repository_is_pinned():
    listed = listing.read()
    assert listing.problems(listed) == []
    per_repository = {name: sum(one["repository"] == name for one in listed["programs"]) for name in listed["repositories"]}
    assert per_repository == {name: one["holds"] for name, one in listed["repositories"].items()}
    assert per_repository["deeplocalize"] == 41


@pytest.mark.parametrize("change, said", [
    (lambda listed: listed["repositories"]["deepfd"].update(commit="main"), "deepfd: no full commit"),
    (lambda listed: listed["programs"].append(listed["programs"][0]), "question_31556268: stands there twice"),
    (lambda listed: listed["programs"][1].update(repository="elsewhere"), "question_31627380: no repository elsewhere"),
    (lambda listed: listed["programs"][1].update(question="4.13"), "question_31627380: no question 4.13"),
    (lambda listed: listed["programs"][1].update(fault=" "), "question_31627380: no fault or no file"),
    (lambda listed: listed["programs"][1].update(faulty="../a.py"), "question_31627380: ../a.py leads out of its repository"),
    (lambda listed: listed["programs"][1].update(code="print()"), "question_31627380: unknown fields"),
])
def test_what_is_wrong_with_a_list_is_said(change, said):
    listed = copy.deepcopy(listing.read())
    change(listed)
    assert listing.problems(listed) == [said]


def _git(folder, *arguments):
    return subprocess.run(["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, text=True,
                          capture_output=True).stdout.strip()


@pytest.fixture
def source(tmp_path):
    """A repository with a newer commit than the pinned one, and what of it is wanted."""
    work = tmp_path / "source"
    (work / "wanted").mkdir(parents=True)
    (work / "other").mkdir()
    _git(work, "init", "-q")
    (work / "wanted" / "a.py").write_text("first\n")
    (work / "other" / "b.py").write_text("left out\n")
    _git(work, "add", ".")
    _git(work, "commit", "-q", "-m", "first")
    commit = _git(work, "rev-parse", "HEAD")
    (work / "wanted" / "a.py").write_text("second\n")
    _git(work, "commit", "-q", "-a", "-m", "second")
    mirror = tmp_path / "mirror" / "owner+name"
    mirror.mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(mirror / "repo")], check=True)
    return types.SimpleNamespace(work=work, mirror=tmp_path / "mirror", commit=commit, folder=mirror / "repo")


@pytest.mark.parametrize("mirrored", (False, True))
def test_a_repository_is_fetched_at_its_commit_and_no_further(source, tmp_path, mirrored):
    url = "https://host/owner/name" if mirrored else source.work.as_uri()
    repository = {"url": url, "commit": source.commit, "folders": ["/wanted/"]}
    for _ in range(2):  # a second time changes nothing
        assert fetch.fetch("one", repository, tmp_path / "cache", source.mirror if mirrored else None) == 0
    assert (tmp_path / "cache" / "one" / "wanted" / "a.py").read_text() == "first\n"
    assert not (tmp_path / "cache" / "one" / "other").exists()


def test_files_that_a_mirror_lacks_are_counted(source, tmp_path):
    missing = _git(source.folder, "rev-parse", f"{source.commit}:wanted/a.py")
    packed = list((source.folder / "objects" / "pack").glob("*.pack"))
    for pack in packed:  # as loose objects, of which one can be lost
        moved = tmp_path / pack.name
        pack.rename(moved)
        for beside in pack.parent.glob(f"{pack.stem}.*"):
            beside.unlink()
        subprocess.run(["git", "-C", str(source.folder), "unpack-objects", "-q"], stdin=moved.open("rb"), check=True)
    (source.folder / "objects" / missing[:2] / missing[2:]).unlink()
    repository = {"url": "https://host/owner/name", "commit": source.commit, "folders": ["/*"]}
    assert fetch.fetch("one", repository, tmp_path / "cache", source.mirror) == 1
    assert (tmp_path / "cache" / "one" / "other" / "b.py").read_text() == "left out\n"


def test_a_missing_mirror_is_said(tmp_path):
    with pytest.raises(RuntimeError, match="holds no copy of owner/name"):
        fetch.fetch("one", {"url": "https://host/owner/name", "commit": "0" * 40, "folders": ["/"]}, tmp_path, tmp_path)


def test_digits_have_mnists_shapes_and_no_digit_is_in_both_sets(tmp_path):
    drawn = numpy.random.default_rng(1)
    images, labels = drawn.integers(0, 256, (2000, 784)), drawn.integers(0, 10, 2000)
    lines = [",".join(["label", *(f"{row}x{column}" for row in range(28) for column in range(28))])]
    lines += [",".join(map(str, [label, *image])) for label, image in zip(labels, images)]
    with zipfile.ZipFile(tmp_path / "digits.zip", "w") as archive:
        archive.writestr("digits.csv", "\n".join(lines))
    (x, y), (held_x, held_y) = digits.load_data(str(tmp_path / "digits.zip"))
    assert (x.shape, y.shape, held_x.shape, held_y.shape) == ((60000, 28, 28), (60000,), (10000, 28, 28), (10000,))

    def marks(pictures):  # a shift in a circle moves pixels, and keeps them
        return [one.tobytes() for one in numpy.sort(pictures.reshape(len(pictures), -1).astype("uint8"))]
    of_mark = dict(zip(marks(images), labels))
    assert [of_mark[mark] for mark in marks(x)] == list(y) and len(of_mark) == 2000
    assert not set(marks(x)) & set(marks(held_x))


def test_the_old_encoder_puts_its_columns_first():
    encoded = old_python.OneHotEncoder(categorical_features=[1]).fit_transform([[5, 1], [6, 3], [7, 1]]).toarray()
    assert encoded.tolist() == [[1, 0, 5], [0, 1, 6], [1, 0, 7]]


def test_a_plot_takes_whatever_it_is_asked():
    figure, axes = old_python.Nothing().subplots(figsize=(1, 2))
    axes[0].plot([1], label="a").set(title=figure)


def test_the_planted_set_has_three_programs_and_every_kind_has_words():
    pytest.importorskip("torch")
    from bench.detection.corpus.planted import programs
    from bench.detection.corpus.scripts import support
    assert len(programs.TUNING) == 3
    kinds = {fault for name in programs.TUNING for fault in programs.fault_names(name)}
    assert kinds - set(programs.WORDS) - set(support.WORDS) == set()
    assert json.dumps(sorted(kinds)) and len(kinds) >= 23


def test_planted_losses_are_wrong_by_what_they_say():
    torch = pytest.importorskip("torch")
    from bench.detection.corpus.planted import programs
    output, y = 5 * torch.randn(40, 10, generator=torch.Generator().manual_seed(1)), torch.arange(40) % 10
    right = programs._of_classes(output, y, None).item()
    assert programs._of_classes(output, y, "loss_summed").item() == pytest.approx(40 * right, rel=1e-5)
    assert programs._of_classes(output, y, "loss_axis").item() == pytest.approx(40 / 10 * right, rel=1e-5)
    assert programs._of_classes(output, y, "softmax_twice").item() >= numpy.log(numpy.e + 9) - 1
    over_batch = -torch.log_softmax(output, 0)[torch.arange(40), y].mean().item()
    assert programs._of_classes(output, y, "softmax_over_batch").item() == pytest.approx(over_batch, rel=1e-5)
    targets = torch.tensor([1.0, 3.0])
    # Of (2, 1) against (2, 2): each output meets each target.
    assert programs._of_numbers(torch.tensor([[1.0], [3.0]]), targets, "broadcast").item() == pytest.approx((0 + 4 + 4 + 0) / 4)
    assert programs._of_numbers(torch.tensor([[1.0], [3.0]]), targets, None).item() == 0


def test_planted_inputs_and_weights_are_wrong_by_what_they_say():
    torch = pytest.importorskip("torch")
    from bench.detection.corpus.planted import programs
    x = torch.tensor([[0.0, 10.0], [4.0, 30.0], [2.0, 20.0]])
    assert programs._scaled(x, 3, None).tolist() == [[0, 0], [1, 1], [0.5, 0.5]]
    assert programs._scaled(x, 3, "scaled_twice")[1].tolist() == pytest.approx([1 / 4, 1 / 20])
    assert programs._scaled(x, 3, "inputs_raw") is x
    y = torch.arange(10).repeat(100)
    assert torch.bincount(programs._thinned(y, y)[1]).tolist() == [100 // (at + 1) ** 2 for at in range(10)]
    first, *_, last = [one for one in programs._started(programs._shallow(None), "start_constant").parameters() if one.dim() > 1]
    assert len(first.unique()) == len(last.unique()) == 1


def test_the_runner_is_run_as_its_head_says():
    assert (pathlib.Path(listing.FOLDER) / "run").stat().st_mode & 0o111
