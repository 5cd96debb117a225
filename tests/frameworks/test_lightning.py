"""Lightning: automatic and manual optimization, validation; watched, judged, stopped."""
import math
import os
import time

import lightning.pytorch as lightning
import pytest
import torch

from tests.support.hook_support import Telemetry, acks, wire

import tocsin
from tocsin.lightning import TocsinCallback, callbacks


class Module(lightning.LightningModule):
    def __init__(self, breaks_at=None):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.breaks_at = torch.nn.Linear(6, 2), breaks_at

    def loss(self, batch):
        return (self.layer(batch) - batch[:, :2]).square().mean()

    def training_step(self, batch, index):
        if self.breaks_at is not None and self.global_step >= self.breaks_at:
            time.sleep(0.02)  # as real steps take a moment
            return self.loss(batch) * math.inf
        loss = self.loss(batch)
        self.log("accuracy", 0.5)
        return loss

    def validation_step(self, batch, index):
        loss = self.loss(batch)
        self.log("val_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Gan(lightning.LightningModule):
    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.generator, self.critic = torch.nn.Linear(3, 6), torch.nn.Linear(6, 1)

    def training_step(self, batch, index):
        of_generator, of_critic = self.optimizers()
        of_critic.zero_grad()
        loss = self.critic(self.generator(torch.randn(4, 3)).detach()).mean() - self.critic(batch).mean()
        self.manual_backward(loss)
        of_critic.step()
        of_generator.zero_grad()
        self.manual_backward(-self.critic(self.generator(torch.randn(4, 3))).mean())
        of_generator.step()

    def configure_optimizers(self):
        return [torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.critic.parameters())]


def fit(tmp_path, module, callback=None, batches=64, **options):
    settings = {"max_epochs": 1, "log_every_n_steps": 1, "accelerator": "cpu", "logger": False, "enable_checkpointing": False,
                "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 2, **options}
    trainer = lightning.Trainer(default_root_dir=tmp_path, callbacks=[callback] if callback else [], **settings)
    data = torch.randn(4 * batches, 6, generator=torch.Generator().manual_seed(0))
    loaders = [torch.utils.data.DataLoader(data, batch_size=4)]
    if isinstance(module, Module):
        loaders.append(torch.utils.data.DataLoader(data[:12], batch_size=4))
    trainer.fit(module, *loaders)
    return trainer


def test_two_lines_watch_a_whole_training(tmp_path, out):
    callback = TocsinCallback(out=out, job="line", capture={"every": "4 steps", "overhead": "100%"})
    fit(tmp_path, Module(), callback, batches=6, max_epochs=2)
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(12))
    losses = telemetry.scalars("loss")
    assert [step for mode, step, _ in losses if mode == wire.TRAIN] == list(range(12))
    assert [step for mode, step, _ in losses if mode == wire.EVAL] == list(range(6)), "3 batches, twice, without the sanity check"
    assert [(mode, step) for mode, step, _ in telemetry.scalars("accuracy")] == [(wire.TRAIN, step) for step in range(12)]
    assert [(mode, step) for mode, step, _ in telemetry.scalars("val_loss")] == [(wire.EVAL, 2), (wire.EVAL, 5)]
    assert set(telemetry.summaries(step=8)) == {"layer.weight", "layer.bias", "gradient/layer.weight", "gradient/layer.bias"}
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"]
    assert telemetry.lifecycles("preflight") == [] and callback.stopped is None


def test_gradients_of_automatic_optimization_are_those_of_its_closure(tmp_path, out):
    """It gives the optimizer a closure: before it there is no gradient, or the one of the step before."""
    class Keeps(Module):
        seen = []

        def on_before_optimizer_step(self, optimizer):
            self.seen.append(self.layer.weight.grad.double().sum().item())

    fit(tmp_path, Keeps(), TocsinCallback(out=out, capture={"every": "1 step", "overhead": "100%"}), batches=4)
    telemetry = Telemetry(out)
    for step, value in enumerate(Keeps.seen):
        assert telemetry.summaries(step=step)["gradient/layer.weight"]["sum"] == pytest.approx(value, rel=1e-5)
    assert len(Keeps.seen) == 4


class Parts(Module):
    """The usual module: its training_step applies an attribute, and forward() is for who uses it later."""
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))

    def forward(self, batch):
        return self.net(batch)

    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.net(batch), (batch[:, 0] > 0).long())


@pytest.mark.parametrize("micro", [1, 2])
def test_modules_inside_are_seen_though_the_module_itself_is_never_applied(tmp_path, out, micro):
    capture = {"every": "2 steps", "overhead": "100%", "collections": {"seen": {"include": ["put_"]}}}
    fit(tmp_path, Parts(), TocsinCallback(out=out, capture=capture), batches=6 * micro, accumulate_grad_batches=micro)
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(6))
    for step in (0, 2, 4):
        rows = telemetry.summaries(step=step)
        assert {"net.0_output_0", "net.1_output_0", "net.2_output_0", "Parts_input_0"} <= set(rows), step
        assert rows["Parts_input_0"]["count"] == 4 * 6 and rows["net.0_output_0"]["count"] == 4 * 8
        assert "net.0_output_1" not in rows, "of micro-batches the first is captured"
    labels = telemetry.summaries(step=4)["cross_entropy_input_1"]
    assert labels["count"] == 4 and labels["max"] <= 1


def test_micro_batches_are_no_steps(tmp_path, out):
    fit(tmp_path, Module(), TocsinCallback(out=out), batches=8, accumulate_grad_batches=4)
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1]
    assert len([mode for mode, _, _ in telemetry.scalars("loss") if mode == wire.TRAIN]) == 2


def test_manual_optimization_of_two_shares_one_clock(tmp_path, out):
    fit(tmp_path, Gan(), TocsinCallback(out=out, capture={"every": "2 steps", "overhead": "100%"}), batches=5)
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2, 3, 4]
    rows = telemetry.summaries(step=4)
    assert {"gradient/critic.weight", "gradient/generator.weight"} <= set(rows)
    assert {"learning_rate", "optimizer2.learning_rate"} <= set(telemetry.names.values())


STOPS = """
transport: {{journal: {out}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: true, mode: {mode}, grace: 60s, deadline: {{ack: 60s}}}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""


@pytest.mark.parametrize("mode", ["stop", "checkpoint_then_stop"])
def test_a_rule_stops_the_trainer(tmp_path, out, server, mode):
    one = server(STOPS.format(out=out, mode=mode))
    one.wait_for("ready")
    callback = TocsinCallback(out=out, run=f"stopped-{mode}")
    trainer = fit(tmp_path, Module(breaks_at=5), callback, batches=1000)
    assert 5 < trainer.global_step < 1000
    assert callback.stopped.rule == "exploding_tensor"
    one.wait_for("stop_state_changed", to="stopped")
    assert [end["outcome"] for end in Telemetry(out).lifecycles("end")] == ["stopped_by_rule"]
    done = [ack for ack in acks(out) if ack["phase"] == "checkpoint_done"]
    if mode == "checkpoint_then_stop":
        path = os.path.join(tmp_path, f"stopped-at-{trainer.global_step}.ckpt")
        assert os.path.exists(path) and done[0]["checkpoint"]["path"] == path
    else:
        assert [ack for ack in done if "path" in ack.get("checkpoint", {})] == []


def test_what_a_module_raises_ends_the_run_as_failed(tmp_path, out):
    class Raises(Module):
        def training_step(self, batch, index):
            raise RuntimeError("bad batch")

    with pytest.raises(RuntimeError, match="bad batch"):
        fit(tmp_path, Raises(), TocsinCallback(out=out))
    end = Telemetry(out).lifecycles("end")[0]
    assert end["outcome"] == "failed" and end["error"] == "RuntimeError: bad batch"


def test_the_entry_point_adds_a_callback_only_where_the_environment_names_a_place(tmp_path, out, monkeypatch):
    for name in ("TOCSIN_RUN", "TOCSIN_OUT", "TOCSIN_BROKERS"):
        monkeypatch.delenv(name, raising=False)
    assert callbacks() == []
    monkeypatch.setenv("TOCSIN_OUT", out)
    assert [type(one) for one in callbacks()] == [TocsinCallback]
    second = TocsinCallback()
    trainer = lightning.Trainer(default_root_dir=tmp_path, callbacks=[*callbacks(), second], max_steps=2, logger=False, accelerator="cpu",
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(8, 6), batch_size=4))
    assert len(Telemetry(out).lifecycles("start")) == 1 and tocsin.get_hook() is None


def test_phases_are_timed(out):
    callback = TocsinCallback(out=out)
    trainer = lightning.Trainer(max_steps=3, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                                accelerator="cpu", callbacks=[callback], val_check_interval=3)
    data = torch.utils.data.DataLoader(torch.randn(24, 6), batch_size=4)
    trainer.fit(Module(), data, data)
    telemetry = Telemetry(out)
    told = [(telemetry.names[row["name"]], row["duration"]) for frame in telemetry.of_kind(wire.SPAN) for row in frame.rows]
    names = [name for name, _ in told if name != "data_wait"]
    assert names == ["initialization"] + ["forward", "backward", "optimizer"] * 3 + ["evaluation", "finalization"]
    assert sum(name == "data_wait" for name, _ in told) >= 6  # three batches of training, three of the evaluation; Lightning reads ahead
    assert min(duration for _, duration in told) > 0


class Body(Module):
    """Its body comes in its evaluation state, as from_pretrained() gives it."""

    def __init__(self, trains):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Dropout(0.3)).train(trains)

    def loss(self, batch):
        return super().loss(self.body(batch))


@pytest.mark.parametrize("trains, expected", [(False, [("parts_in_eval", ["body.1"])]), (True, [])])
def test_a_body_that_stays_in_its_evaluation_state_is_told(tmp_path, trains, expected):
    data = torch.utils.data.DataLoader(torch.randn(64, 6), 8)
    lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                      enable_model_summary=False, callbacks=[TocsinCallback(out=str(tmp_path), job="body")]).fit(Body(trains), data, data)
    told = Telemetry(str(tmp_path)).lifecycles("preflight")
    assert [(one["kind"], one["names"]) for record in told for one in record["findings"]] == expected
