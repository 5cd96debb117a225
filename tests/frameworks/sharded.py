"""FSDP on the ranks that torchrun makes (gloo): each rank tells of its own shards, and writes what they are, as JSON per rank.

Usage: sharded.py FOLDER fsdp1|fsdp2 [host|device]
"""
import json
import sys

import torch
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

import tocsin
from tocsin.adapters.torch import capture

STATISTICS = ["at_least(0.05)", "quantiles", "median", "histogram"]
CAPTURE = {"every": "1 step", "overhead": "100%", "collections": {
    name: {"statistics": STATISTICS} for name in ("gradients", "weights", "biases")}}


def main(folder, kind, path="host"):
    if path == "device":  # as on a GPU; without a wait there is nothing to see of it
        capture.on_host = lambda tensor: False
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    if kind == "fsdp2":
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    else:
        model = FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=folder + "/data", run="sharded", capture=CAPTURE)
    kept = {}
    torch.manual_seed(rank)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 6)).square().mean()
        loss.backward()
        if step == 2:
            for name, parameter in model.named_parameters():
                name = name.replace("_fsdp_wrapped_module.", "")
                for key, tensor in ((name, parameter.detach()), ("gradient/" + name, parameter.grad)):
                    local = tensor if tensor is None or not hasattr(tensor, "to_local") else tensor.to_local()
                    if local is not None:
                        kept[key] = local.double().reshape(-1).tolist()
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}, hook.stats()
    device = hook.stats().get("device", {"skipped_total": {}, "tensors_total": 0})
    assert device["skipped_total"] == {} and (device["tensors_total"] > 0) == (path == "device"), device
    with open(f"{folder}/rank{rank}.json", "w", encoding="utf-8") as file:
        json.dump(kept, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
