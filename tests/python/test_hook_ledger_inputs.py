"""What the ledger says of a model's inputs, and what the rule leak makes of it: columns that know the target, samples that were trained on,
tasks that are solved at once; and healthy jobs that look alike."""
import collections
import json

import numpy
import pytest
import torch
import torch.nn.functional as F

from tests.support.hook_support import Telemetry
from tests.support.program import run_cli

import tocsin
from tocsin.adapters.torch.ledger import adapter, budget


def mlp(width, outputs):
    return torch.nn.Sequential(torch.nn.Linear(width, 24), torch.nn.ReLU(), torch.nn.Linear(24, outputs))


def mse(z, t):
    return F.mse_loss(z, t)


def entropy(z, t):
    return F.cross_entropy(z, t)


def fit(out, model, loss, x, t, evaluated=(), *, epochs=2, batch=32, view=None, order="shuffled", rate=1e-3, plan=None):
    """A loop of one's own, watched. ``evaluated``: sets after each epoch. ``view``: what augments a batch."""
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    hook = tocsin.watch(model, optimizer, out=out)
    if plan:
        hook.plan(**plan)
    for _ in range(epochs):
        model.train()
        places = torch.randperm(len(x)) if order == "shuffled" else torch.arange(len(x))
        for begin in range(0, len(x), batch):
            inputs, targets = x[places[begin:begin + batch]], t[places[begin:begin + batch]]
            inputs = view(inputs) if view else inputs
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for held, wanted in evaluated:
                for begin in range(0, len(held), 64):
                    inputs, targets = held[begin:begin + 64], wanted[begin:begin + 64]
                    loss(model(inputs), targets)
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
    return hook


def told(out, which):
    """{field: values} of ledger/data/<which>/, in the order in which they were sent."""
    telemetry, found = Telemetry(out), collections.defaultdict(list)
    for name in set(telemetry.names.values()):
        if name.startswith(f"ledger/data/{which}/"):
            found[name.split("/", 3)[3]] = [value for _, _, value, *_ in telemetry.scalars(name)]
    return found


def issues(out, tmp_path):
    """{kind: issue} of the rule leak."""
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{use: leak}]\n", encoding="utf-8")
    code, told, error = run_cli("evaluate", "--from", out, "--rules", rules, "--output", "json")
    assert code in (0, 1), error
    return {one["kind"]: one for one in json.loads(told)["issues"]}


def table(rows=1500, seed=2):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 8, generator=random)
    noise = torch.randn(rows, generator=random)
    return x, x[:, 0] + 0.7 * x[:, 1] + noise, random


# ---- columns


def test_a_column_that_is_the_target_bit_for_bit(out, tmp_path):
    x, t, _ = table()
    x[:, 5] = t
    fit(out, mlp(8, 1), mse, x, t[:, None])
    fields = told(out, "train")
    assert fields["read"] == [256, 512, 1024, 1500]
    assert min(fields["column_equal/5"]) == 1 and max(fields["shifted_fit/5"]) < 0.1
    issue = issues(out, tmp_path)["target_in_input"]
    assert issue["labels"]["severity"] == "warning" and issue["annotations"]["summary"].startswith("Input column 5 equals the label, bit for bit, in 100 % of")


def test_a_column_that_explains_the_target_alone(out, tmp_path):
    x, t, random = table()
    x[:, 3] = -2 * t + 0.1 * torch.randn(len(t), generator=random)
    fit(out, mlp(8, 1), mse, x, t[:, None])
    expected = numpy.corrcoef(x[:, 3].numpy(), t.numpy())[0, 1] ** 2
    assert told(out, "train")["column_fit/3"][-1] == pytest.approx(expected, abs=1e-4)
    assert issues(out, tmp_path)["target_in_input"]["labels"]["severity"] == "warning"


def test_classes_as_a_column(out, tmp_path):
    x, t, _ = table()
    labels = (t > 0.5).long() + (t > 1.5).long()
    x[:, 2] = labels.float()
    fit(out, mlp(8, 3), entropy, x, labels)
    assert told(out, "train")["classes"][-1] == 3 and told(out, "train")["column_fit/2"][-1] == pytest.approx(1)
    assert issues(out, tmp_path)["target_in_input"]["labels"]["severity"] == "warning"


def test_classes_in_one_hot_columns(out, tmp_path):
    x, t, _ = table()
    labels = (t > 0.5).long() + (t > 1.5).long()
    x[:, 2:5] = F.one_hot(labels, 3).float()
    fit(out, mlp(8, 3), entropy, x, labels)
    assert "target_in_input" in issues(out, tmp_path)


def test_one_of_several_targets(out, tmp_path):
    x, t, _ = table()
    targets = torch.stack((t, x[:, 1] * x[:, 2]), 1)
    x[:, 6] = targets[:, 1]
    fit(out, mlp(8, 2), mse, x, targets)
    assert told(out, "train")["column_equal/6"][-1] == 1
    assert "target_in_input" in issues(out, tmp_path)


def strong_column():
    """R² = 0.95."""
    x, t, random = table()
    x[:, 4] = t + t.std() * 0.2294 * torch.randn(len(t), generator=random)
    return mlp(8, 1), mse, x, t[:, None], {}


def next_value_of_a_series():
    """Windows of a random walk: the last value explains the next nearly as well as the one before it does."""
    walk = torch.randn(3000, generator=torch.Generator().manual_seed(3)).cumsum(0)
    x = walk.unfold(0, 12, 1)[:-1]
    return mlp(12, 1), mse, x, walk[12:12 + len(x)][:, None], {}


def autoencoder():
    x, _, _ = table()
    return mlp(8, 8), mse, x, x.clone(), {}


def denoiser():
    x, _, random = table()
    return mlp(8, 8), mse, x + 0.02 * torch.randn(x.shape, generator=random), x, {}


def one_batch_again_and_again():
    """Eight samples: of 500 columns some fit by chance."""
    random = torch.Generator().manual_seed(5)
    x = torch.randn(8, 500, generator=random).repeat(200, 1)
    return mlp(500, 1), mse, x, torch.randn(8, 1, generator=random).repeat(200, 1), {"batch": 8, "order": "as they are"}


def rare_events():
    """1 in 500; a column that is always 0 is the label in 99.8 %."""
    x, _, random = table()
    t = torch.zeros(len(x), dtype=torch.long)
    t[::500] = 1
    x[:, 1] = 0
    return mlp(8, 2), entropy, x, t, {}


def three_far_clouds():
    """η² = 0.94, petal length of iris."""
    random = torch.Generator().manual_seed(6)
    t = torch.randint(0, 3, (1500,), generator=random)
    x = torch.randn(1500, 4, generator=random)
    x[:, 0] += 4.8 * t
    return mlp(4, 3), entropy, x, t, {}


HEALTHY_COLUMNS = (strong_column, next_value_of_a_series, autoencoder, denoiser, one_batch_again_and_again, rare_events, three_far_clouds)


@pytest.mark.parametrize("job", HEALTHY_COLUMNS, ids=lambda job: job.__name__)
def test_healthy_columns_are_silent(out, tmp_path, job):
    model, loss, x, t, how = job()
    fit(out, model, loss, x, t, **how)
    assert issues(out, tmp_path) == {}


@pytest.mark.parametrize("first", ("targets", "inputs"))
@pytest.mark.parametrize("scale", (1, 2))
def test_targets_that_a_model_is_given_to_compute_its_loss_are_no_inputs(out, tmp_path, first, scale):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = mlp(8, 1)

        def forward(self, batch):
            return F.mse_loss(self.net(batch["inputs"]), scale * batch["targets"].clone())

    x, t, _ = table()
    model = Own()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    hook = tocsin.watch(model, optimizer, out=out)
    for begin in range(0, 1500, 25):
        batch = {"inputs": x[begin:begin + 25], "targets": t[begin:begin + 25, None]}
        batch = batch if first == "inputs" else dict(reversed(batch.items()))
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()
    assert max(told(out, "train")["column_equal/0"]) == 0 and issues(out, tmp_path) == {}


def test_no_element_travels(out):
    x, t, _ = table()
    x, t = x + 1000, t + 5000
    x[:, 5] = t
    fit(out, mlp(8, 1), mse, x, t[:, None], [(x[:300], t[:300, None])])
    sent = {value for which in ("train", "evaluation") for values in told(out, which).values() for value in values}
    assert sent and not sent & {float(one) for one in torch.cat((x.reshape(-1), t))}


# ---- samples


def held(rows, seed):
    x, t, _ = table(rows, seed)
    return x, t[:, None]


def test_an_evaluation_of_trained_samples(out, tmp_path):
    x, t = held(1500, 2)
    fit(out, mlp(8, 1), mse, x, t, [(x[600:1000], t[600:1000])])
    fields = told(out, "evaluation")
    assert fields["compared"][0] == fields["seen"][0] == 400 and fields["train_distinct"][0] == 1500 and fields["look"] == [1, 2]
    issue = issues(out, tmp_path)["overlap"]
    assert issue["labels"]["severity"] == "warning" and issue["annotations"]["summary"].startswith("400 of 400 rows of evaluation (100 %) also occur among 1500 training rows")


def test_a_tenth_of_the_evaluation_was_trained_on(out, tmp_path):
    (x, t), (other, wanted) = held(1500, 2), held(1000, 9)
    places = torch.arange(1000) % 10 == 3
    other[places], wanted[places] = x[:100], t[:100]
    fit(out, mlp(8, 1), mse, x, t, [(other, wanted)])
    assert told(out, "evaluation")["seen"][0] == 100
    assert issues(out, tmp_path)["overlap"]["labels"]["severity"] == "warning"


def test_a_half_is_an_error(out, tmp_path):
    (x, t), (other, wanted) = held(1500, 2), held(1000, 9)
    other[::2], wanted[::2] = x[:500], t[:500]
    fit(out, mlp(8, 1), mse, x, t, [(other, wanted)])
    assert issues(out, tmp_path)["overlap"]["labels"]["severity"] == "error"


def test_texts_that_were_trained_on(out, tmp_path):
    """Rows of numbers, the same but for how far they are padded."""
    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = torch.nn.Embedding(50, 8), torch.nn.Linear(8, 2)

        def forward(self, ids):
            return self.head(self.table(ids).mean(1))

    random = torch.Generator().manual_seed(4)
    x = torch.randint(1, 50, (1200, 12), generator=random)
    t = torch.randint(0, 2, (1200,), generator=random)
    fit(out, Words(), entropy, x, t, [(F.pad(x[:300], (0, 7)), t[:300])])
    assert "overlap" in issues(out, tmp_path)


def unseen():
    x, t = held(1500, 2)
    return mlp(8, 1), mse, x, t, [held(500, 9)], {"epochs": 4}


def the_training_set_is_evaluated_too():
    x, t = held(1500, 2)
    return mlp(8, 1), mse, x, t, [(x, t), held(500, 9)], {"epochs": 4}


def only_the_training_set_is_evaluated():
    x, t = held(1500, 2)
    return mlp(8, 1), mse, x, t, [(x, t)], {}


def duplicates_are_meant():
    """Nine switches: 1500 samples of 512 there are, so whole sets repeat themselves."""
    random = torch.Generator().manual_seed(3)
    x = torch.randint(0, 2, (2000, 9), generator=random).float()
    t = (x.sum(1) > 4).long()
    return mlp(9, 2), entropy, x[:1500], t[:1500], [(x[1500:], t[1500:])], {"rate": 1e-4}


def some_duplicates():
    """A third of all rows has one of 200 values, in training and in evaluation."""
    random = torch.Generator().manual_seed(3)
    x = torch.randn(2500, 8, generator=random)
    t = torch.randn(2500, 1, generator=random)
    places = torch.randint(0, 200, (2500,), generator=random)
    common = torch.rand(2500, generator=random) < 0.33
    x[common], t[common] = x[places[common]], t[places[common]]
    order = torch.randperm(2500, generator=random)
    x, t = x[order], t[order]
    return mlp(8, 1), mse, x[:1800], t[:1800], [(x[1800:], t[1800:])], {"epochs": 4}


def augmented():
    x, t = held(1500, 2)
    return mlp(8, 1), mse, x, t, [held(500, 9)], {"view": lambda one: one + 0.01 * torch.randn_like(one)}


def some(monkeypatch, every):
    """After four steps only each ``every``-th is measured, in training and in evaluation."""
    monkeypatch.setattr(budget, "_every", lambda cost, lasts: every)
    monkeypatch.setattr(budget, "FIRST", 4)
    monkeypatch.setattr(budget, "ALLOWED", every)


HEALTHY_SAMPLES = (unseen, the_training_set_is_evaluated_too, only_the_training_set_is_evaluated, duplicates_are_meant, some_duplicates, augmented)


@pytest.mark.parametrize("job", HEALTHY_SAMPLES, ids=lambda job: job.__name__)
def test_healthy_evaluations_are_silent(out, tmp_path, job):
    model, loss, x, t, evaluated, how = job()
    fit(out, model, loss, x, t, evaluated, **how)
    assert told(out, "evaluation")["compared"]
    assert issues(out, tmp_path) == {}


@pytest.mark.parametrize("every", (2, 4))
@pytest.mark.parametrize("job", HEALTHY_SAMPLES, ids=lambda job: job.__name__)
def test_they_are_silent_where_only_some_steps_are_measured(out, tmp_path, monkeypatch, job, every):
    some(monkeypatch, every)
    model, loss, x, t, evaluated, how = job()
    fit(out, model, loss, x, t, evaluated, **how)
    assert told(out, "evaluation")["compared"]
    assert issues(out, tmp_path) == {}


@pytest.mark.parametrize("every", (2, 4))
def test_trained_samples_are_found_where_only_some_steps_are_measured(out, tmp_path, monkeypatch, every):
    some(monkeypatch, every)
    x, t = held(1500, 2)
    fit(out, mlp(8, 1), mse, x, t, [(x[600:1000], t[600:1000])], epochs=4)
    assert "overlap" in issues(out, tmp_path)


class EndsEarly(budget.Budget):
    """Measures the first eight calls, and no others."""

    def begin(self, step, now):
        super().begin(step, now)
        self.every = 1 if step < 8 else 1 << 20


def test_an_evaluation_of_which_only_the_beginning_is_measured(out, tmp_path, monkeypatch):
    """What was not measured comes last. It counts, too: else the training set would be taken for a part of itself."""
    budgets = iter((budget.Budget, EndsEarly))
    monkeypatch.setattr(adapter, "Budget", lambda: next(budgets)())
    x, t = held(1500, 2)
    fit(out, mlp(8, 1), mse, x, t, [(x, t)])
    fields = told(out, "evaluation")
    assert fields["compared"] == fields["seen"] == [512] and fields["same"] == [1] and issues(out, tmp_path) == {}


# ---- at once


class Text(torch.nn.Module):
    """Each place sees the three tokens that end there, or with ``ahead`` one that is to come: what a wrong mask or padding does."""

    def __init__(self, ahead):
        super().__init__()
        self.table, self.seen, self.head = torch.nn.Embedding(20, 32), torch.nn.Conv1d(32, 32, 3), torch.nn.Linear(32, 20)
        self.around = (1, 1) if ahead else (2, 0)

    def forward(self, ids):
        return self.head(self.seen(F.pad(self.table(ids).transpose(1, 2), self.around)).relu().transpose(1, 2))


@pytest.mark.parametrize("ahead", (True, False))
@pytest.mark.parametrize("evaluated", (True, False))
def test_a_mask_that_hides_nothing_solves_the_task_at_once(out, tmp_path, ahead, evaluated):
    text = torch.randint(0, 20, (6800, 17), generator=torch.Generator().manual_seed(8))
    text = text[:, :-1], text[:, 1:].contiguous()
    train, other = [one[:6400] for one in text], [one[6400:] for one in text]
    loss = lambda z, t: F.cross_entropy(z[:, :-1].reshape(-1, 20), t[:, :-1].reshape(-1))  # noqa: E731
    plan = {"updates": 40000} if evaluated else {"updates": 40000, "epochs": 200}
    fit(out, Text(ahead), loss, *train, [other] if evaluated else [], epochs=1, rate=1e-2, plan=plan)
    found = issues(out, tmp_path)
    assert set(found) == ({"too_fast"} if ahead else set())
    assert not ahead or found["too_fast"]["labels"]["severity"] == "info"
