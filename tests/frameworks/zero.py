"""DeepSpeed's ZeRO on the ranks that torchrun makes (gloo). Rank 0 writes, as JSON, what the last step's gradients and weights were as a
whole: as DeepSpeed's own collectives put them together, which the hook never calls.

Usage: zero.py FOLDER STAGE
"""
import json
import sys

import deepspeed
import torch
from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_grad

import tocsin

STEPS = 3


def main(folder, stage):
    deepspeed.init_distributed(dist_backend="gloo")
    ranks, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
    shared = stage != "0"
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    network[2].bias.requires_grad = False
    engine, optimizer, _, _ = deepspeed.initialize(model=network, model_parameters=[p for p in network.parameters() if p.requires_grad], config={
        "train_batch_size": 8 * ranks, "train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "SGD", "params": {"lr": 0.1}},
        "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": int(stage)}})
    hook = tocsin.watch(engine, optimizer, out=folder + "/data", run="zero", capture={"every": "1 step", "overhead": "100%"})
    torch.manual_seed(rank)
    whole = {}
    for micro in range(2 * STEPS):  # two make a step
        loss = engine(torch.randn(4, 6)).square().mean()
        engine.backward(loss)
        if micro == 2 * STEPS - 1:
            for name, parameter in network.named_parameters():
                if parameter.requires_grad:
                    weight = safe_get_full_fp32_param(parameter) if shared else parameter.detach()
                    gradient = safe_get_full_grad(parameter) if shared else parameter.grad
                    whole[name] = weight.double().reshape(-1).tolist()
                    whole["gradient/" + name] = gradient.double().reshape(-1).tolist()
        engine.step()
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}, hook.stats()
    if rank == 0:
        with open(folder + "/whole.json", "w", encoding="utf-8") as file:
            json.dump(whole, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
