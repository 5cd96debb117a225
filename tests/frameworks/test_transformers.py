"""Hugging Face's Trainer with a model made from a configuration: watched, judged, stopped."""
import copy
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest
import torch
import transformers

from tests.support.hook_support import Telemetry, acks, wire

from tocsin.transformers import TocsinCallback


class Tokens(torch.utils.data.Dataset):
    """Counting upwards: something that can be learnt."""

    def __init__(self, size=512):
        starts = torch.randint(0, 20, (size, 1), generator=torch.Generator().manual_seed(0))
        self.ids = (starts + torch.arange(8)) % 32

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


def model():
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2)
    return transformers.GPT2LMHeadModel(config)


def trainer(tmp_path, callback, **options):
    settings = {"max_steps": 12, "per_device_train_batch_size": 8, "logging_steps": 4, "report_to": [], "use_cpu": True,
                "disable_tqdm": True, "save_strategy": "no", "learning_rate": 1e-3, **options}
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path / "trained"), **settings)
    return transformers.Trainer(model=model(), args=arguments, train_dataset=Tokens(), eval_dataset=Tokens(24), callbacks=[callback])


def test_two_lines_watch_a_whole_training(tmp_path, out):
    callback = TocsinCallback(out=out, job="gpt", capture={"every": "4 steps"})
    trainer(tmp_path, callback, eval_strategy="steps", eval_steps=6).train()
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(12))
    losses = telemetry.scalars("loss")
    assert [step for mode, step, _ in losses if mode == wire.TRAIN] == list(range(12))
    assert [step for mode, step, _ in losses if mode == wire.EVAL] == list(range(6)), "3 batches, twice"
    assert [step for _, step, _ in telemetry.scalars("grad_norm")] == [3, 7, 11]
    rows = telemetry.summaries(step=8)
    assert {"transformer.h.0.attn.c_attn.weight", "gradient/transformer.h.0.attn.c_attn.weight"} <= set(rows)
    assert telemetry.lifecycles("start")[0]["job"] == "gpt"
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"]
    assert telemetry.lifecycles("preflight") == [] and callback.stopped is None


def test_a_copy_of_the_watched_model_runs_and_says_nothing(tmp_path, out):
    """An average of the weights, evaluated beside the training."""
    class Copies(transformers.TrainerCallback):
        losses = []

        def on_step_end(self, args, state, control, model=None, **_):
            ids = Tokens(8).ids
            self.losses.append(float(copy.deepcopy(model)(input_ids=ids, labels=ids).loss))

    callback, copies = TocsinCallback(out=out), Copies()
    made = trainer(tmp_path, callback)
    made.add_callback(copies)
    made.train()
    assert len(copies.losses) == 12
    assert len([step for mode, step, _ in Telemetry(out).scalars("loss") if mode == wire.TRAIN]) == 12


def test_micro_batches_make_one_step_and_one_loss(tmp_path, out):
    one = trainer(tmp_path, TocsinCallback(out=out), max_steps=3, gradient_accumulation_steps=4, logging_steps=1)
    one.train()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2]
    own = [entry["loss"] for entry in one.state.log_history if "loss" in entry]
    assert [value for _, _, value in telemetry.scalars("loss")] == pytest.approx(own, rel=1e-3)


def test_the_trainers_own_filter_hides_no_loss(tmp_path, out, judged):
    """logging_nan_inf_filter is on by default: the Trainer logs the average of the finite ones."""
    fired = judged("[exploding_tensor]")
    one = trainer(tmp_path, TocsinCallback(out=out), max_steps=3)
    with torch.no_grad():
        one.model.transformer.wte.weight[5, 3] = math.nan
    one.train()
    assert math.isnan(Telemetry(out).scalars("loss")[0][2])
    assert "exploding_tensor" in fired()


STOPS = """
transport: {{journal: {out}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: true, mode: {mode}, grace: 60s, deadline: {{ack: 60s}}}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""


class Breaks(transformers.TrainerCallback):
    """Breaks a weight in step 3, then waits a moment in each step, as real steps take one."""

    def on_step_end(self, args, state, control, model=None, **_):
        if state.global_step == 3:
            with torch.no_grad():
                model.transformer.wte.weight[5, 3] = math.inf
        if state.global_step >= 3:
            time.sleep(0.05)


@pytest.mark.parametrize("mode", ["stop", "checkpoint_then_stop"])
def test_a_rule_stops_the_trainer(tmp_path, out, server, mode):
    one = server(STOPS.format(out=out, mode=mode))
    one.wait_for("ready")
    callback = TocsinCallback(out=out, run=f"stopped-{mode}", capture={"every": "2 steps", "overhead": "100%"})
    running = trainer(tmp_path, callback, max_steps=400, num_train_epochs=100)
    running.add_callback(Breaks())
    running.train()
    assert 3 < running.state.global_step < 400
    assert callback.stopped.rule == "exploding_tensor"
    one.wait_for("stop_state_changed", to="stopped")
    telemetry = Telemetry(out)
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["stopped_by_rule"]
    phases = [ack["phase"] for ack in acks(out)]
    assert phases[0] == "received" and "accepted" in phases and "stopping" in phases
    if mode == "checkpoint_then_stop":
        path = f"{tmp_path}/trained/checkpoint-{running.state.global_step}"
        assert os.path.exists(path + "/model.safetensors")
        done = [ack for ack in acks(out) if ack["phase"] == "checkpoint_done"]
        assert json.dumps(done[0]).count(path) == 1


def test_all_ranks_leave_at_the_same_step(tmp_path):
    """The other one would wait for it in all_reduce for ever."""
    script = pathlib.Path(__file__).with_name("two_ranks.py")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port),
                           str(script), str(tmp_path)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"left{rank}").read_text() for rank in range(2)] == ["3", "3"]
    telemetry = Telemetry(tmp_path / "data")
    assert {frame.header["rank"] for frame in telemetry.of_kind(wire.SCALAR)} == {0, 1}, "every rank's loss"
    assert {frame.header["rank"] for frame in telemetry.of_kind(wire.SUMMARY)} == {0}, "what all hold alike is the first's to tell"
    assert {frame.header["rank"] for frame in telemetry.of_kind(wire.DICTIONARY) for entry in frame.entries
            if entry["name"].endswith("weight")} == {0}


def test_a_resumed_training_goes_on_counting(tmp_path, out):
    first = TocsinCallback(out=out + "1")
    trainer(tmp_path, first, max_steps=4, save_strategy="steps", save_steps=4).train()
    trainer(tmp_path, TocsinCallback(out=out), max_steps=6).train(resume_from_checkpoint=f"{tmp_path}/trained/checkpoint-4")
    telemetry = Telemetry(out)
    assert telemetry.steps() == [4, 5]
    assert telemetry.lifecycles("start")[-1]["continues_from"] == 4


def test_a_callback_that_cannot_open_says_so_and_training_goes_on(tmp_path):
    with pytest.warns(RuntimeWarning, match="tocsin is off"):
        trainer(tmp_path, TocsinCallback(out="redis://host"), max_steps=2).train()
