"""A data-parallel loop (gloo) for torchrun without a line of ours, as `tocsin run` attaches to it. BAD_STEP: rank 0's batch is infinite there.
LEAVES: file that each rank adds "rank step" to when its loop ends, however it does."""
import os
import time

import torch
import torch.distributed as dist


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ended = dist.get_rank(), 0
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    criterion = torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        for step in range(4000):
            batch = torch.randn(8, 4)
            if rank == 0 and step == int(os.environ["BAD_STEP"]):
                batch = batch * float("inf")
            optimizer.zero_grad()
            criterion(model(batch), torch.zeros(8, 2)).backward()  # the allreduce: whoever is left alone stands here for ever
            ended = step + 1
            optimizer.step()
            time.sleep(0.01)
    finally:
        with open(os.environ["LEAVES"], "a", encoding="ascii") as file:
            file.write(f"{rank} {ended}\n")


if __name__ == "__main__":
    main()
