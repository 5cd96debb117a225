"""Second-order diagnostics on losses whose curvature and noise are known."""
import math

import numpy
import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin
from tocsin.curvature import Curvature

STEEP = torch.tensor([4.0, 1.0, 0.5], dtype=torch.float64)


class Bowl(torch.nn.Module):
    """½ θᵀ diag(steep) θ + bᵢ·θ of each sample i."""

    def __init__(self, steep=STEEP):
        super().__init__()
        self.place = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64))
        self.steep = steep

    def forward(self, tilts):
        return 0.5 * (self.steep * self.place**2).sum() + tilts @ self.place


@pytest.fixture
def watched(out):
    made = []

    def make(model, **how):
        optimizer = torch.optim.SGD(model.parameters(), lr=how.pop("lr", 0.1))
        made.append(tocsin.watch(model, optimizer, out=out, **how))
        return made[-1], optimizer
    yield make
    for one in made:
        one.close()


def test_the_hessian_of_a_bowl(watched):
    model = Bowl()
    hook, _ = watched(model)
    told = Curvature(hook, model, iterations=60).measure(lambda: model(torch.zeros(1, 3, dtype=torch.float64)))
    assert told["curvature/eigenvalue"] == pytest.approx(4, rel=1e-6)
    assert told["curvature/trace"] == pytest.approx(5.5) and told["curvature/trace_error"] == pytest.approx(0, abs=1e-9)
    assert not [name for name in told if name.startswith("noise/")], "of one number no noise is known"


def test_a_saddle_has_the_sign_of_its_steepest_direction(watched):
    model = Bowl(torch.tensor([-7.0, 2.0, 1.0], dtype=torch.float64))
    hook, _ = watched(model)
    told = Curvature(hook, model, iterations=80).measure(lambda: model(torch.zeros(1, 3, dtype=torch.float64)))
    assert told["curvature/eigenvalue"] == pytest.approx(-7, rel=1e-6)
    assert told["curvature/trace"] == pytest.approx(-4) and "curvature/tic" not in told


@pytest.mark.parametrize("groups, samples", [(32, 32), (8, 32), (8, 35)])
def test_noise_between_samples(watched, groups, samples):
    model = Bowl()
    hook, _ = watched(model)
    tilts = torch.tensor(numpy.random.default_rng(3).normal(0, 2, (samples, 3)))
    told = Curvature(hook, model, groups=groups, rate=0.25).measure(lambda: model(tilts))
    each = samples // groups
    used = each * groups
    rows = (STEEP * model.place.detach() + tilts).numpy()[:used].reshape(groups, each, 3).mean(1)
    g = rows.mean(0)
    variances = each * rows.var(0, ddof=1)
    noise, squared = variances.sum(), (g**2).sum()
    along = (rows - g) @ g
    across = rows - g - numpy.outer(along, g) / squared
    loss = float(model(tilts).mean())
    expected = {"noise/norm_test": math.sqrt(noise / used / squared),
                "noise/inner_product_test": math.sqrt(each * (along**2).sum() / (groups - 1) / used) / squared,
                "noise/orthogonality_test": math.sqrt(each * (across**2).sum() / (groups - 1) / used / squared),
                "noise/snr": (g**2 / (variances / used)).mean(), "noise/early_stopping": 1 - (g**2 / (variances / used)).mean(),
                "noise/scale": noise / (squared - noise / used), "curvature/tic": noise / 5.5}
    if loss > 0:
        expected["noise/cabs"] = 0.25 * noise / loss
    assert {name: value for name, value in told.items() if name in expected} == pytest.approx(expected)


def test_a_gradient_of_nothing_but_noise_asks_to_stop(watched):
    model = Bowl()
    hook, _ = watched(model)
    with torch.no_grad():
        model.place.zero_()
    tilts = torch.tensor(numpy.random.default_rng(5).normal(0, 1, (64, 3)))
    told = Curvature(hook, model, groups=64).measure(lambda: model(tilts - tilts.mean(0)))
    assert told["noise/early_stopping"] == pytest.approx(1) and "noise/scale" not in told


@pytest.mark.parametrize("rate, alpha", [(0.05, -0.8), (0.25, 0.0), (0.4, 0.6), (0.5, 1.0)])
def test_how_far_a_step_went(watched, rate, alpha):
    """Along the steepest direction a step of 1/4 is the minimum, one of 1/2 as high on the other side."""
    model = Bowl()
    with torch.no_grad():
        model.place[1:] = 0
    hook, optimizer = watched(model, lr=rate)
    probe = Curvature(hook, model)
    batch = lambda: model(torch.zeros(4, 3, dtype=torch.float64))  # noqa: E731
    lengths = []
    for _ in range(2):
        optimizer.zero_grad()
        batch().mean().backward()
        with probe.step(batch) as told:
            optimizer.step()
        if told["step/l2"] > 1e-12:
            lengths.append(told)
    assert lengths[0]["step/alpha"] == pytest.approx(alpha, abs=1e-9)
    assert lengths[0]["step/l2"] == pytest.approx(4 * rate) == lengths[0]["step/from_start_l2"]
    assert told["step/from_start_l2"] == pytest.approx(abs(1 - (1 - 4 * rate)**2))


def test_no_minimum_ahead_has_no_alpha(watched):
    model = Bowl(torch.tensor([-1.0, -1.0, -1.0], dtype=torch.float64))
    hook, optimizer = watched(model)
    batch = lambda: model(torch.zeros(4, 3, dtype=torch.float64))  # noqa: E731
    batch().mean().backward()
    with Curvature(hook, model).step(batch) as told:
        optimizer.step()
    assert set(told) == {"step/l2", "step/from_start_l2"}


class Layers(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))


def train(out, probing):
    torch.manual_seed(0)
    model = Layers()
    optimizer = torch.optim.Adam(model.parameters())
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step", "collections": {"outputs": {}, "gradients": {}, "weights": {}}})
    probe = Curvature(hook, model)
    for _ in range(6):
        x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
        batch = lambda: torch.nn.functional.cross_entropy(model(x), y, reduction="none")  # noqa: E731
        if probing:
            assert probe.measure(batch), hook.stats()
        optimizer.zero_grad()
        batch().mean().backward()
        with probe.step(batch, when=probing):
            optimizer.step()
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
    return model.state_dict()


def test_the_training_and_what_is_captured_of_it_are_the_same(tmp_path):
    plain, probed = train(tmp_path / "plain", False), train(tmp_path / "probed", True)
    assert all(torch.equal(plain[name], probed[name]) for name in plain)
    told = [Telemetry(tmp_path / name) for name in ("plain", "probed")]
    for step in range(6):
        rows = [{name: (row["sum"], row["sumsq"]) for name, row in one.summaries(step).items()} for one in told]
        assert rows[0] and rows[0] == rows[1]
    assert len(told[1].scalars("curvature/eigenvalue")) == len(told[1].scalars("step/l2")) == 6


def test_a_loop_under_data_parallelism_goes_on(watched, tmp_path):
    """Forward passes whose gradients DDP is not asked for leave its buckets as they were."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(Layers())
        hook, optimizer = watched(model)
        probe = Curvature(hook, model)
        for _ in range(3):
            x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
            batch = lambda: torch.nn.functional.cross_entropy(model(x), y, reduction="none")  # noqa: E731
            assert "curvature/trace" in probe.measure(batch)
            optimizer.zero_grad()
            batch().mean().backward()
            with probe.step(batch) as told:
                optimizer.step()
            assert told["step/l2"] > 0
    finally:
        torch.distributed.destroy_process_group()


def test_hooks_of_modules_do_not_see_it(watched):
    model = Layers()
    hook, _ = watched(model)
    seen = []
    model[0].register_full_backward_hook(lambda *_: seen.append("backward"))
    model[0].register_forward_hook(lambda *_: seen.append("forward"))
    assert Curvature(hook, model).measure(lambda: model(torch.randn(8, 6)).square().mean(1)) and seen == []
    model(torch.randn(8, 6)).sum().backward()
    assert seen == ["forward", "backward"]


def test_what_fails_is_counted_and_measures_nothing(watched):
    model = Bowl()
    hook, optimizer = watched(model)
    probe = Curvature(hook, model)

    def broken():
        raise RuntimeError("no batch")
    assert probe.measure(broken) == {}
    with probe.step(broken) as told:
        optimizer.step()
    assert told == {} and hook.stats()["hook_errors_total"]["curvature"] == 2


def test_nothing_is_computed_where_the_hook_is_off(watched, monkeypatch):
    monkeypatch.setenv("TOCSIN_DISABLED", "1")
    model = Bowl()
    hook, _ = watched(model)
    assert not hook.enabled
    assert Curvature(hook, model).measure(lambda: 1 / 0) == {}
