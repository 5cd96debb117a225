"""One rank of a DistributedDataParallel job over gloo: replicas.py RANK WORLD PORT JOURNAL KIND. Kinds: sharded (a sampler that knows its rank),
same (each rank shuffles alike), alone (the inner model is watched before it is wrapped, same batches), halves (two groups of
replicas, as with tensor parallelism: pairs share batches by design), constant (an input that never changes)."""
import sys

import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel

import tocsin


def main(rank, world, port, journal, kind):
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    group = None
    if kind == "halves":
        groups = [distributed.new_group([0, 2]), distributed.new_group([1, 3])]
        group = groups[rank % 2]
    if kind == "alone":
        optimizer = torch.optim.SGD(inner.parameters(), 0.01)
        hook = tocsin.watch(inner, optimizer, out=journal, run="00000000-0000-4000-8000-000000000001", job="replicas")
    model = DistributedDataParallel(inner, process_group=group)
    if kind != "alone":
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        hook = tocsin.watch(model, optimizer, out=journal, run="00000000-0000-4000-8000-000000000001", job="replicas")
    own = {"sharded": rank, "halves": rank // 2}.get(kind, 0)
    chance = torch.Generator().manual_seed(100 + own)
    fixed = torch.ones(4, 8)
    for _ in range(8):
        rows = fixed if kind == "constant" else torch.randn(4, 8, generator=chance)
        optimizer.zero_grad()
        loss = model(rows).pow(2).mean()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"], hook.stats()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5])
