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
    for step in range(3):
        labels = chance.integers(0, 3, 60).astype("i8")
        saved = {"labels": labels, "predictions": numpy.where(chance.random(60) < 0.8, labels, (labels + 1) % 3), "latent": chance.normal(size=(60, 8)) * [
            9, 5, 1, 1, 1, 1, 1, 1], "attention": chance.dirichlet(numpy.full(6, 0.3), size=(4, 6)), "fc.weight": chance.normal(size=(5, 7)) * [
                [1], [1], [1e-3], [1], [1]]}
        saved["attention"][2] = numpy.eye(6)[::-1]  # the sharpest: looks backwards
        for name, value in saved.items():
            hook.save_tensor(name, value, raw=True)
        for feature, gain in (("age", 0.7), ("height", 0.1), ("weight", 0.2)):
            hook.log({f"feature_importance/gain/{feature}": gain})
            hook.save_tensor(f"average_shap/{feature}", numpy.array([gain, -gain]))
        time.sleep(0.3 if step == 2 else 0)
        hook.step()
    hook.close()
    return folder, saved


def test_every_recipe_runs_and_is_right(run, monkeypatch):
    folder, saved = run
    monkeypatch.chdir(folder)
    found, blocks = {}, BLOCK.findall((ROOT / "docs" / "analysis-recipes.md").read_text())
    for block in blocks:
        exec(compile(block, "docs/analysis-recipes.md", "exec"), found)  # noqa: S102
    assert len(blocks) == 7 and found["step"] == 2
    labels, predictions = saved["labels"], saved["predictions"]
    assert found["confusion"].tolist() == [[int(((labels == true) & (predictions == said)).sum()) for said in range(3)] for true in range(3)]
    assert found["recall"].tolist() == [pytest.approx((predictions[labels == true] == true).mean()) for true in range(3)]
    covariance = numpy.linalg.eigvalsh(numpy.cov(saved["latent"].T))
    assert found["explained"] == pytest.approx(covariance[-2:].sum() / covariance.sum()) and found["points"].shape == (60, 2)
    assert found["sharpest"] == 2 and found["looks_at"].tolist() == [5, 4, 3, 2, 1, 0]
    assert found["ranked"] == ["age", "weight", "height"] and "feature_importance" in (folder / "importance.svg").read_text()
    assert found["contributions"] == {f"average_shap/{name}": pytest.approx(gain) for name, gain in (("age", 0.7), ("height", 0.1), ("weight", 0.2))}
    assert found["keep"].tolist() == [True, True, False, True, True]
    assert found["at_slow_steps"][2] == pytest.approx(numpy.linalg.norm(saved["latent"])) and 1 not in found["at_slow_steps"] and found["usual"] > 0
