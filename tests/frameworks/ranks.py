"""A data-parallel loop for torchrun (gloo) whose loss becomes infinite, until a rule stops it. Each rank writes the step after which it left
into left<rank>.

Usage: ranks.py KIND FOLDER, with KIND lightning, accelerate, fsdp1, fsdp2, or zero0 to zero3 (DeepSpeed)
"""
import os
import sys
import time

import torch

import tocsin

RATE, PAUSE = 1e20, 0.005
CAPTURE = {"every": "10 steps"}


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def data():
    return torch.utils.data.DataLoader(torch.randn(64, 6), batch_size=4)


def lightning(left):
    import lightning.pytorch as pl
    from tocsin.lightning import TocsinCallback

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = model()

        def training_step(self, batch, _):
            time.sleep(PAUSE)
            return self.layers(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=RATE)

    trainer = pl.Trainer(max_epochs=-1, accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, callbacks=[TocsinCallback(run="ranks", capture=CAPTURE)])
    trainer.fit(Module(), data())
    left(trainer.global_step)


def accelerate(left):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    watched = model()
    watched, optimizer, loader = accelerator.prepare(watched, torch.optim.SGD(watched.parameters(), lr=RATE), data())
    hook = tocsin.watch(watched, optimizer, run="ranks", capture=CAPTURE)
    step = 0
    while True:
        for batch in loader:
            time.sleep(PAUSE)
            loss = watched(batch).square().mean()
            accelerator.backward(loss)
            hook.log(loss=loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if hook.should_stop():
                accelerator.set_trigger()
            if accelerator.check_trigger():
                hook.acknowledge_stop()
                hook.close()
                return left(step)


def fsdp(left, kind):
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    torch.distributed.init_process_group("gloo")
    watched = model()
    if kind == "fsdp2":
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        for layer in (watched[0], watched[2]):
            fully_shard(layer, mesh=mesh)
        fully_shard(watched, mesh=mesh)
    else:
        watched = FullyShardedDataParallel(watched, device_id=torch.device("cpu"), use_orig_params=True)
    optimizer = torch.optim.SGD(watched.parameters(), lr=RATE)

    def update():
        optimizer.step()
        optimizer.zero_grad()
    loop(left, watched, optimizer, lambda loss: loss.backward(), update)


def zero(left, stage):
    import deepspeed

    deepspeed.init_distributed(dist_backend="gloo")
    watched = model()
    engine, optimizer, _, _ = deepspeed.initialize(model=watched, model_parameters=watched.parameters(), config={
        "train_batch_size": 4 * torch.distributed.get_world_size(), "optimizer": {"type": "SGD", "params": {"lr": RATE}},
        "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": stage}})
    loop(left, engine, optimizer, engine.backward, engine.step)


def loop(left, watched, optimizer, backward, update):
    """Each rank asks its own hook, and no other rank."""
    hook = tocsin.watch(watched, optimizer, run="ranks", capture=CAPTURE)
    step = 0
    while True:
        for batch in data():
            time.sleep(PAUSE)
            loss = watched(batch).square().mean()
            backward(loss)
            hook.log(loss=loss)
            update()
            step += 1
            if hook.should_stop():
                hook.acknowledge_stop()
                hook.close()
                torch.distributed.barrier()
                return left(step)


def main(kind, folder):
    torch.set_num_threads(1)

    def left(step):
        with open(f"{folder}/left{os.environ['RANK']}", "w", encoding="ascii") as file:
            file.write(str(step))

    if kind.startswith("fsdp"):
        fsdp(left, kind)
    elif kind.startswith("zero"):
        zero(left, int(kind[-1]))
    else:
        {"lightning": lightning, "accelerate": accelerate}[kind](left)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
