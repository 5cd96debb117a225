"""Fingerprints of samples: what is kept, what two sets have in common, and that they are the same wherever they are made."""
import numpy
import pytest
import torch

from tocsin.adapters.torch.ledger import fingerprints as made
from tocsin.ledger.fingerprints import Kept, Pass, mixed

SALT = made.Salt()
TENSORS = {
    "table": torch.randn(8, 3), "images": torch.randn(8, 3, 40, 40), "text": torch.randint(0, 9, (8, 600)), "half": torch.randn(8, 5).half(),
    "double": torch.randn(8, 5).double(), "brain": torch.randn(8, 4).bfloat16(), "pixels": torch.randint(0, 255, (8, 900)).byte(),
    "last": torch.randn(8, 3, 40, 40).to(memory_format=torch.channels_last), "one": torch.randn(8), "switches": torch.rand(8, 90) > 0.5}


def on_a_device(inputs, target):
    """By the operations that a device is given."""
    numbers, out = torch.from_numpy(SALT.host), 0
    for at, (tensor, most) in enumerate([*((one, made.MOST_WORDS) for one in inputs), (target, made.MOST_TARGETS)]):
        begin = at * made.MOST_WORDS if at < len(inputs) else made.MOST_TENSORS * made.MOST_WORDS
        bits = made._words(torch, made._some(tensor, most)) * made._MIX
        bits = (bits ^ (bits >> 29)) * numbers[begin:begin + bits.shape[1]]
        out = out + bits.sum(1)
    return out.numpy()


@pytest.mark.parametrize("name", TENSORS)
def test_host_and_device_make_the_same(name):
    for target in (torch.arange(8), torch.randn(8, 2)):
        found = made.fingerprints([TENSORS[name]], target, SALT)
        assert (found == on_a_device([TENSORS[name]], target)).all() and len(set(found.tolist())) == 8


def test_two_zeros_and_padding_are_none():
    x, t = torch.tensor([[0.0, 1.0]]), torch.tensor([1])
    assert made.fingerprints([x], t, SALT) == made.fingerprints([torch.tensor([[-0.0, 1.0]])], t, SALT)
    text = torch.tensor([[3, 4]])
    assert made.fingerprints([text], t, SALT) == made.fingerprints([torch.tensor([[3, 4, 0, 0]])], t, SALT)
    assert made.fingerprints([text], t, SALT) != made.fingerprints([text], t + 1, SALT)


def numbers(begin, end):
    return mixed(numpy.arange(begin, end))


def test_more_than_enough_are_thinned_alike():
    train = Kept(1000)
    for begin in range(0, 20000, 100):
        train.add(numbers(begin, begin + 100))
    known, counts = train.all()
    assert train.visits == 20000 and 500 <= len(known) <= 1000 and (counts == 1).all()
    assert ((known & numpy.uint64((1 << train.bits) - 1)) == 0).all()
    held = Pass()
    held.add(numbers(19000, 21000))
    found = held.compared(train)
    kept = [(numbers(begin, end) & numpy.uint64((1 << train.bits) - 1) == 0).sum() for begin, end in ((19000, 21000), (19000, 20000))]
    assert (found["compared"], found["seen"]) == tuple(kept)


def test_visits_are_counted_and_the_first_come_first():
    train = Kept()
    for _ in range(3):
        train.add(numbers(0, 300))
    train.add(numbers(1000, 1100))
    known, counts = train.all()
    assert (known[:300] == numbers(0, 300)).all() and (counts[:300] == 3).all() and (counts[300:] == 1).all()
    held = Pass()
    held.add(numpy.concatenate([numbers(290, 300), numbers(5000, 5040), numbers(5000, 5001)]))
    found = held.compared(train)
    assert found["train_compared"] == 1000 and found["train_repeats"] == 900 and found["train_distinct"] == 400
    assert found["early"] == 50 and found["early_seen"] == 0 and found["seen"] == 10 and found["repeats"] == 2


def test_batches_of_nothing_but_training_are_another_set():
    train, held = Kept(), Pass()
    train.add(numbers(0, 300))
    for begin in (0, 100, 200, 1000, 1100):
        held.add(numbers(begin, begin + 100))
    found = held.compared(train)
    assert (found["compared"], found["seen"], found["training_rows"], found["same"]) == (200, 0, 300, 0)
    whole = Pass()
    whole.add(numbers(0, 300))
    assert whole.compared(train)["same"] == 1
    part = Pass()
    part.add(numbers(0, 200))
    assert part.compared(train)["same"] == 0
    thinned = Pass()  # every second batch was looked at
    thinned.add(numbers(0, 200))
    thinned.missed = 1
    assert thinned.compared(train)["same"] == 1


def test_few_samples_say_nothing():
    train, held = Kept(), Pass()
    train.add(numbers(0, 199))
    held.add(numbers(0, 10))
    assert held.compared(train) is None and Pass().compared(train) is None
