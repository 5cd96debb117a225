"""One of two ranks that average gradients; rank 1 is late: in its backward pass, at a barrier, with an operation of its own."""
import os
import sys
import time

import torch

import tocsin

LATE = 1.0


def main():
    torch.distributed.init_process_group("gloo")
    late = LATE if torch.distributed.get_rank() == 1 else 0.0
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hook = tocsin.watch(model, optimizer, out=os.path.join(sys.argv[1], str(torch.distributed.get_rank())))
    for step in range(4):
        output = model(torch.ones(2, 4))
        if step == 1:
            output.register_hook(lambda gradient: time.sleep(late))
        if step == 3:
            with model.no_sync():
                output.sum().backward()
        else:
            output.sum().backward()
        if step == 2:
            time.sleep(late)
            torch.distributed.barrier()
            value = torch.ones(1)
            time.sleep(late)
            work = torch.distributed.all_reduce(value, async_op=True)
            work.wait()
            assert value.item() == 2
        optimizer.step()
    stats = hook.stats()
    hook.close()
    assert stats["hook_errors_total"] == {}, stats
    torch.distributed.destroy_process_group()


main()
