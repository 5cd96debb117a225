"""What the ten scripts share: 1,797 images of digits, a small network, and what Tocsin says of its training.

Each script beside this one trains the same network with one deliberate mistake. `healthy.py` has none.
"""

import sklearn.datasets
import torch

import tocsin

EPOCHS = 9
BATCH = 64


def data():
    """Images of 64 pixels from 0 to 1, and the digit of each."""
    found = sklearn.datasets.load_digits()
    return torch.tensor(found.data, dtype=torch.float32) / 16, torch.tensor(found.target)


def split(images, labels):
    """1,497 samples to train on, 300 to evaluate with."""
    return (images[:-300], labels[:-300]), (images[-300:], labels[-300:])


def network(outputs=10):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.ReLU(), torch.nn.Linear(64, outputs))


def batches(images, labels):
    """23 batches of an epoch, in a new order."""
    order = torch.randperm(len(images))
    for start in range(0, len(images) - BATCH + 1, BATCH):
        rows = order[start:start + BATCH]
        yield images[rows], labels[rows]


def watch(model, optimizer):
    """The hook, with the rules in a thread of this process. Each issue is a line on stderr as soon as it is found."""
    return tocsin.watch(model, optimizer, rules="default")


def evaluate(hook, model, criterion, images, labels):
    model.eval()
    with torch.no_grad():
        hook.log(loss=criterion(model(images), labels))
        hook.step()
    model.train()


def finish(hook):
    """Print the first issue of each rule, in the order in which they were found."""
    hook.close()
    first = {}
    for issue in hook.issues():
        if issue["status"] == "firing":
            first.setdefault(issue["rule"], issue)
    for rule, issue in first.items():
        print(f"step {'-' if issue['step'] is None else issue['step']}  {rule}: {issue['summary']}")
    if not first:
        print("no issue")
