"""A data-parallel loop (gloo) for torchrun. What goes wrong with one of its ranks is said by the environment:

BAD_STEP     the loss of rank 0 is NaN at that step; the others log nothing
LEAVES       file that each rank adds "rank step status" to when it is asked to stop
TROUBLE      what rank 1 does when it has heard of the stop: is "killed", or "hangs"; or it "joins" only when rank 0 has:
             it has no hook before
"""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import tocsin


TROUBLE = os.environ.get("TROUBLE", "")
HEARD = os.environ["LEAVES"] + ".heard"


def trouble(rank, hook):
    if hook is None or hook.stats()["commands_received_total"] == 0:
        return
    if rank == 0:
        open(HEARD, "w").close()
    elif TROUBLE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif TROUBLE == "hangs":
        time.sleep(600)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    late = TROUBLE == "joins" and rank == 1
    hook = None if late else tocsin.watch(model, optimizer, run="many", job="many")
    for step in range(4000):
        if TROUBLE:
            trouble(rank, hook)
        if late and os.path.exists(HEARD):
            late = False
            hook = tocsin.watch(model, optimizer, run="many", job="many")
            hook.load_state_dict({"steps": {"train": step}, "global_step": step})
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()  # the allreduce: whoever is left alone stands here for ever
        if rank == 0:
            hook.log(loss=float("nan") if step == int(os.environ["BAD_STEP"]) else 1.0)
        optimizer.step()
        if hook is not None and hook.should_stop():
            with open(os.environ["LEAVES"], "a", encoding="ascii") as file:
                file.write(f"{rank} {step + 1}\n")
            hook.acknowledge_stop()
            hook.close()
            dist.barrier()  # torchrun ends the others as soon as one has ended with 77
            sys.exit(tocsin.EXIT_STOPPED)
        time.sleep(0.01)


main()
