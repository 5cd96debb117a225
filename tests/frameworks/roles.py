"""A healthy loop on the ranks that torchrun makes (gloo), whose weights lie in parts, or belong to ranks of other roles. Writes into
FOLDER/rank<n>.json which names must be told as parts.

Usage: roles.py KIND FOLDER [diverging]
"""
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import tocsin

EVERY = {"every": "1 step", "overhead": "100%", "workers": "all", "collections": {
    name: {"statistics": ["digest"]} for name in ("weights", "biases", "gradients")}}


class Block(nn.Module):
    """Of sizes that two ranks share evenly."""

    def __init__(self, width=32):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(16, width), nn.Linear(width, 16), nn.LayerNorm(16)

    def forward(self, x):
        return self.norm(x + self.down(torch.relu(self.up(x))))


def names(model, of=lambda name, parameter: True):
    return [name.replace("_fsdp_wrapped_module.", "").replace("module.", "", 1) if name.startswith("module.") else
            name.replace("_fsdp_wrapped_module.", "") for name, one in model.named_parameters() if of(name, one)]


def fsdp1(strategy="FULL_SHARD", width=32, flat=False, ignored=False):
    model = Block(width)
    kept = [model.norm] if ignored else None
    parts = names(model, lambda name, _: not (ignored and name.startswith("norm")))
    model = FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=not flat, ignored_modules=kept,
                                     sharding_strategy=getattr(ShardingStrategy, strategy))
    if flat:
        parts = names(model)
    return model, parts if strategy != "NO_SHARD" else []


def fsdp2(width=32, ignored=False):
    model = Block(width)
    fully_shard(model, **({"ignored_params": set(model.norm.parameters())} if ignored else {}))
    return model, names(model, lambda name, _: not (ignored and name.startswith("norm")))


def tensor_parallel():
    model = Block()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model, ["up.weight", "up.bias", "down.weight"]  # what is added once is whole


class Experts(nn.Module):
    def __init__(self, mesh):
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.Parameter(distribute_tensor(torch.randn(4, 16, 16) * 0.1, mesh, [Shard(0)]))
        self.gate.weight = nn.Parameter(distribute_tensor(self.gate.weight.detach(), mesh, [Replicate()]))

    def forward(self, x):
        share = torch.softmax(x @ self.gate.weight.to_local().t() + self.gate.bias, -1)
        here = self.experts.to_local()
        return x + torch.einsum("bi,eij->bj", x, here) * share.mean()


def expert_parallel():
    return Experts(init_device_mesh("cpu", (dist.get_world_size(),))), ["experts"]


def marked():
    """Megatron's way: each rank holds a tensor of its own, with an attribute."""
    model = Block()
    torch.manual_seed(100 + dist.get_rank())
    nn.init.normal_(model.up.weight, std=0.1)
    nn.init.normal_(model.down.weight, std=0.1)
    model.up.weight.tensor_model_parallel = True
    model.down.weight.allreduce = False
    return model, ["up.weight", "down.weight"]


def pipeline():
    """Each stage is a Block, so that names and sizes are the same on all ranks."""
    from torch.distributed.pipelining import PipelineStage

    torch.manual_seed(100 + dist.get_rank())
    model = Block()
    model.stage = [PipelineStage(model, dist.get_rank(), dist.get_world_size(), torch.device("cpu"))]
    return model, names(model)


def groups():
    """Two groups of replicas in one job, each with a model of its own."""
    rank = dist.get_rank()
    both = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    torch.manual_seed(100 + rank // 2)
    model = DistributedDataParallel(Block(), process_group=both[rank // 2])
    return model, names(model)


def replicas():
    return DistributedDataParallel(Block()), []


KINDS = {"fsdp1": fsdp1, "fsdp1_uneven": lambda: fsdp1(width=33), "fsdp1_flat": lambda: fsdp1(flat=True),
         "fsdp1_grad": lambda: fsdp1("SHARD_GRAD_OP"), "fsdp1_whole": lambda: fsdp1("NO_SHARD"), "fsdp1_ignored": lambda: fsdp1(ignored=True),
         "fsdp1_inside": fsdp1,
         "fsdp2": fsdp2, "fsdp2_uneven": lambda: fsdp2(33), "fsdp2_ignored": lambda: fsdp2(ignored=True), "tensor": tensor_parallel,
         "expert": expert_parallel, "marked": marked, "pipeline": pipeline, "groups": groups, "replicas": replicas}


def zero(stage, folder):
    import deepspeed

    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(0)
    model = Block()
    parts = names(model) if stage else []
    engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_batch_size": 8 * dist.get_world_size(), "optimizer": {"type": "SGD", "params": {"lr": 0.01}},
        "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": stage}})
    hook = tocsin.watch(engine, optimizer, run="roles", job="roles", capture=EVERY)
    for _ in range(6):
        loss = engine(torch.randn(8, 16)).square().mean()
        engine.backward(loss)
        hook.log(loss=loss)
        engine.step()
    return hook, parts


def main(kind, folder, diverging=""):
    torch.set_num_threads(1)
    if kind.startswith("zero"):
        hook, parts = zero(int(kind[-1]), folder)
    else:
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        model, parts = KINDS[kind]()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        # As Lightning has it: what is watched lies in what shards it.
        watched = model.module if kind == "fsdp1_inside" else model
        hook = tocsin.watch(watched, optimizer, run="roles", job="roles", capture=EVERY)
        torch.manual_seed(10 if kind in ("tensor", "expert", "marked") else 10 + dist.get_rank())
        for step in range(6):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 16)).square().mean()
            loss.backward()
            # Nobody else reduces what each rank holds whole beside its parts.
            for name, one in model.named_parameters() if "ignored" in kind or kind == "marked" else ():
                if "norm" in name:
                    dist.all_reduce(one.grad)
            hook.log(loss=loss)
            optimizer.step()
            if diverging and step == 2 and dist.get_rank() == 1:
                with torch.no_grad():
                    next(one for name, one in model.named_parameters() if name.endswith(diverging)).add_(0.01)
    assert hook.stats()["hook_errors_total"] == {}, hook.stats()
    hook.close()
    with open(f"{folder}/rank{os.environ['RANK']}.json", "w", encoding="utf-8") as file:
        json.dump(parts, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
