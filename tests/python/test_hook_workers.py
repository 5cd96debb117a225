"""Workers of a data loader whose ``worker_init_fn`` gives them the same random numbers (tocsin.adapters.torch.surroundings.workers)."""
import multiprocessing
import random

import numpy
import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin


class Augmented(torch.utils.data.Dataset):
    """Adds noise from one generator, or none."""

    def __init__(self, generator="numpy", size=64):
        self.generator, self.size = generator, size

    def __len__(self):
        return self.size

    def __getitem__(self, number):
        noise = {"numpy": numpy.random.rand, "random": random.random, "torch": lambda: float(torch.rand(())), "none": lambda: 0.0,
                 "own": lambda: numpy.random.default_rng(number).random()}[self.generator]()
        return torch.full((4,), float(number) + noise)


class Streamed(torch.utils.data.IterableDataset):
    """Each worker shuffles alike, and takes its share."""

    def __iter__(self):
        order = list(range(64))
        random.shuffle(order)
        information = torch.utils.data.get_worker_info()
        return (torch.full((4,), float(one)) for one in order[information.id::information.num_workers])


def same(worker):
    numpy.random.seed(42)
    random.seed(42)
    torch.manual_seed(42)


def by_number(worker):
    numpy.random.seed(worker)


def as_documented(worker):
    seed = torch.initial_seed() % 2 ** 32
    numpy.random.seed(seed)
    random.seed(seed)


def train(out, data, init, workers=2, epochs=1, evaluates=False, **options):
    torch.manual_seed(0)
    module = torch.utils.data._utils.worker
    inner = module._worker_loop
    net = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.1))
    optimizer = torch.optim.SGD(net.parameters(), 1e-5)
    hook = tocsin.watch(net, optimizer, out=out, job="workers")
    loader = torch.utils.data.DataLoader(data, 4, num_workers=workers, worker_init_fn=init, **options)
    for _ in range(epochs):
        net.train()
        for rows in torch.randn(4, 4, 4) if evaluates else loader:
            optimizer.zero_grad()
            net(rows).square().mean().backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for rows in loader if evaluates else ():
                net(rows)
    hook.close()
    assert not hook.stats()["hook_errors_total"] and module._worker_loop is inner
    return [(one["kind"], one["count"], one["names"]) for record in Telemetry(out).lifecycles("preflight") for one in record["findings"]]


@pytest.mark.parametrize("generator", ["numpy", "random", "torch"])
def test_workers_that_are_seeded_alike_are_told(out, capfd, generator):
    assert train(out, Augmented(generator), same) == [("workers_alike", 2, [generator])]
    assert f"2 workers of a data loader draw the same random numbers ({generator})" in capfd.readouterr().err


def test_workers_that_begin_each_epoch_alike_are_told(out):
    assert train(out, Augmented(), by_number, epochs=2) == [("workers_repeat", 2, ["numpy"])]


@pytest.mark.parametrize("init, generator", [(None, "numpy"), (as_documented, "numpy"), (as_documented, "random"), (same, "none"), (same, "own"),
                                             (by_number, "torch")])
def test_workers_that_draw_their_own_numbers_are_healthy(out, init, generator):
    """As PyTorch seeds them, as its documentation says, and where nothing is drawn."""
    assert train(out, Augmented(generator), init, epochs=2) == []


def test_a_single_worker_and_workers_that_live_on_are_healthy(out):
    assert train(out + "one", Augmented(), same, workers=1) == []
    assert train(out + "on", Augmented(), by_number, epochs=3, persistent_workers=True) == []


def test_streams_that_are_shuffled_alike_are_healthy(out):
    assert train(out, Streamed(), same) == []


def test_an_evaluation_that_repeats_itself_is_healthy(out):
    assert train(out, Augmented(), same, epochs=2, evaluates=True) == []


def test_a_spawned_worker_runs_what_pytorch_runs(out):
    """Its function is found by the name of PyTorch's own; what it draws is not seen."""
    import pickle
    net = torch.nn.Linear(4, 1)
    hook = tocsin.watch(net, torch.optim.SGD(net.parameters(), 0.1), out=out, job="workers")
    ours = torch.utils.data._utils.worker._worker_loop
    assert b"tocsin" not in pickle.dumps(ours) and pickle.loads(pickle.dumps(ours)) is ours
    loader = torch.utils.data.DataLoader(Augmented(size=8), 4, num_workers=1, worker_init_fn=same,
                                         multiprocessing_context=multiprocessing.get_context("spawn"))
    assert len(list(loader)) == 2
    hook.close()
    assert not hook.stats()["hook_errors_total"]


def test_an_error_of_the_function_is_raised_as_ever(out):
    def broken(worker):
        raise KeyError("mine")

    net = torch.nn.Linear(4, 1)
    hook = tocsin.watch(net, torch.optim.SGD(net.parameters(), 0.1), out=out, job="workers")
    with pytest.raises(KeyError, match="mine"):
        list(torch.utils.data.DataLoader(Augmented(), 4, num_workers=1, worker_init_fn=broken))
    hook.close()
