"""Small trainings with one thing wrong, and their healthy twins: `fed_rules_job.py CASE healthy|faulty [FOLDER]`. What the hook measures of
them is all that a rule gets to see. With FOLDER two ranks wait there for each other before they begin."""
import os
import pathlib
import sys
import time

import torch

import tocsin

STEPS = 40
case, faulty = sys.argv[1], sys.argv[2] == "faulty"
torch.manual_seed(int(os.environ["RANK"]) if case == "replica_divergence" and faulty else 0)
torch.set_num_threads(1)


def blobs(classes=4, same=False):
    """Batches of points around one centre per class; `same`: the last two have one centre."""
    centres = 4 * torch.eye(classes, 16)
    if same:
        centres[-1] = centres[-2]
    labels = torch.arange(256) % classes
    while True:
        yield centres[labels] + torch.randn(256, 16) / 2, labels


def images(scale, shift):
    while True:
        yield torch.rand(32, 3, 8, 8) * scale + shift, torch.arange(32) % 4


def tokens(padding):
    while True:
        batch = torch.randint(1, 50, (16, 20))
        batch[:, int(20 * (1 - padding)):] = 0
        yield batch, torch.arange(16) % 4


class Texts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(50, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.embedding(x).mean(1))


def network(activation, *last):
    return torch.nn.Sequential(torch.nn.Linear(16, 32), activation, torch.nn.Linear(32, 4), *last)


model, data, criterion, rate, before = network(torch.nn.ReLU()), blobs(), torch.nn.CrossEntropyLoss(), 0.01, 0
if case == "dead_relu" and faulty:
    torch.nn.init.constant_(model[0].bias, -100)
elif case == "saturated_activation":
    model = network(torch.nn.Sigmoid())
    if faulty:
        model[0].weight.data *= 100
elif case == "confusion":
    data, rate, before = blobs(same=faulty), 0.1, 100  # a model that has learned
elif case == "class_imbalance" and faulty:
    data = ((x, torch.zeros_like(y)) for x, y in blobs())
elif case == "check_input_images":
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 4))
    data, rate = (images(255, 0), 1e-6) if faulty else (images(3.4, -1.7), 0.01)
elif case == "probabilities_into_loss" and faulty:
    model = network(torch.nn.ReLU(), torch.nn.Softmax(1))
elif case == "nlp_sequence_ratio":
    model, data = Texts(), tokens(0.8 if faulty else 0.2)
elif case == "unchanged_tensor" and faulty:
    rate = 0.0
elif case == "update_large" and faulty:
    rate = 50.0
elif case == "constant_input" and faulty:
    data = ((torch.full_like(x, 0.5), y) for x, y in blobs())
optimizer = torch.optim.SGD(model.parameters(), lr=rate)


def step(hook=None):
    x, y = next(data)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    if hook is not None:
        hook.log(loss=loss)
    optimizer.step()
    if case == "weight_saturation" and faulty:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.sign())


for _ in range(before):
    step()
capture = {"every": "1 step", "overhead": "100%"}
if case == "replica_divergence":
    capture["workers"] = "all"
hook = tocsin.watch(model, optimizer, loss=criterion, capture=capture)
end = time.monotonic() + 30
if len(sys.argv) > 3:
    (pathlib.Path(sys.argv[3]) / os.environ["RANK"]).touch()
    while len(os.listdir(sys.argv[3])) < 2:
        assert time.monotonic() < end, "the other rank does not come"
        time.sleep(0.01)
step(hook)
while hook.stats()["commands_received_total"] == 0:  # what the rules need
    assert time.monotonic() < end, "no rule has asked for anything"
    time.sleep(0.01)
for _ in range(STEPS):
    step(hook)
assert not hook.stats()["hook_errors_total"], hook.stats()
hook.close()
