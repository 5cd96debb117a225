"""After accelerate, examples/nlp_example.py: its loop, with a small classifier."""
import argparse
import sys

import torch
from accelerate import Accelerator

import tocsin  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
accelerator = Accelerator(cpu=True)
torch.manual_seed(42)
model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(params=model.parameters(), lr=args.lr)
x = torch.randn(256, 12)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, :3].argmax(1)), batch_size=16, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
hook = tocsin.watch(model, optimizer)  # tocsin 2
for epoch in range(args.epochs):
    model.train()
    for inputs, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        hook.log(loss=loss)  # tocsin 3
        optimizer.step()
        optimizer.zero_grad()
        if hook.should_stop():  # tocsin 4
            hook.acknowledge_stop()  # tocsin 5
            sys.exit(tocsin.EXIT_STOPPED)  # tocsin 6
