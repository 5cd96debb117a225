"""Blocks of docs/analysis-recipes.md run on a real run, and their numbers are those of the script that was run."""
import re
import time

import numpy
import pytest

import tocsin
from tests.support.program import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(folder, what was saved at the last step)."""
    folder = tmp_path_factory.mktemp("recipes")
    chance = numpy.random.default_rng(5)
    hook = tocsin.watch(out=str(folder / "run1"), run="r", job="recipes", capture={"every": "1 step", "overhead": "100%", "collections": {
        name: {"every": "1 step"} for name in ("default", "weights", "labels", "predictions")}})
    longest = 0.0
    for step in range(3):
        began = time.monotonic()
        labels = chance.integers(0, 3, 60).astype("i8")
        saved = {"labels": labels, "predictions": numpy.where(chance.random(60) < 0.8, labels, (labels + 1) % 3), "latent": chance.normal(size=(60, 8)) * [
            9, 5, 1, 1, 1, 1, 1, 1], "attention": chance.dirichlet(numpy.full(6, 0.3), size=(4, 6)), "fc.weight": chance.normal(size=(5, 7)) * [
                [1], [1], [1e-3], [1], [1]]}
        saved.update(images=chance.random((4, 1, 24, 24)), features=chance.random((4, 3, 6, 6)), feature_gradients=chance.normal(size=(4, 3, 6, 6)))
        saved["attention"][2] = numpy.eye(6)[::-1]  # the sharpest: looks backwards
        for name, value in saved.items():
            hook.save_tensor(name, value, raw=True)
        for feature, gain in (("age", 0.7), ("height", 0.1), ("weight", 0.2)):
            hook.log({f"feature_importance/gain/{feature}": gain})
            hook.save_tensor(f"average_shap/{feature}", numpy.array([gain, -gain]))
        if step == 2:  # takes more than twice as long as the others, however slow this machine is
            time.sleep(0.1 + 3 * longest)
        hook.step()
        longest = max(longest, time.monotonic() - began)
    hook.close()
    return folder, saved


def test_every_recipe_runs_and_is_right(run, monkeypatch):
    folder, saved = run
    monkeypatch.chdir(folder)
    found, blocks = {}, BLOCK.findall((ROOT / "docs" / "analysis-recipes.md").read_text())
    for block in blocks:
        exec(compile(block, "docs/analysis-recipes.md", "exec"), found)  # noqa: S102
    assert len(blocks) == 9 and found["step"] == 2
    labels, predictions = saved["labels"], saved["predictions"]
    assert found["confusion"].tolist() == [[int(((labels == true) & (predictions == said)).sum()) for said in range(3)] for true in range(3)]
    assert found["recall"].tolist() == [pytest.approx((predictions[labels == true] == true).mean()) for true in range(3)]
    covariance = numpy.linalg.eigvalsh(numpy.cov(saved["latent"].T))
    assert found["explained"] == pytest.approx(covariance[-2:].sum() / covariance.sum()) and found["points"].shape == (60, 2)
    assert found["sharpest"] == 2 and found["looks_at"].tolist() == [5, 4, 3, 2, 1, 0]
    importance = saved["feature_gradients"].mean(axis=(2, 3))
    values = numpy.maximum(0, (importance[:, :, None, None] * saved["features"]).sum(axis=1))
    assert found["activation"].data["values"] == pytest.approx(values)
    for (row, column), cells in zip(found["peaks"], values):  # a cell has 4 × 4 pixels; its middle is between two of them
        assert max(abs(row / 4 - cells.argmax() // 6), abs(column / 4 - cells.argmax() % 6)) <= 1
    assert str(found["activation"]).startswith("Grad-CAM of 4 samples, 6 × 6 cells over 24 × 24 pixels. Strongest: ")
    assert "Grad-CAM, sample 3" in (folder / "activation.html").read_text()
    assert found["surface"].data["greatest"][0] == saved["fc.weight"].max() and "fc.weight" in (folder / "weight.svg").read_text()
    assert numpy.array_equal(found["slices"].data["drawn"], saved["features"][0]) and numpy.array_equal(found["cubes"].data["drawn"], saved["features"][0])
    assert found["ranked"] == ["age", "weight", "height"] and "feature_importance" in (folder / "importance.svg").read_text()
    assert found["contributions"] == {f"average_shap/{name}": pytest.approx(gain) for name, gain in (("age", 0.7), ("height", 0.1), ("weight", 0.2))}
    assert found["keep"].tolist() == [True, True, False, True, True]
    assert found["at_slow_steps"][2] == pytest.approx(numpy.linalg.norm(saved["latent"])) and 1 not in found["at_slow_steps"] and found["usual"] > 0
