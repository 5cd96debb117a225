"""A model that is small enough to train in a test, and one step of it."""
import torch


def make(seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def backward(model, optimizer):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 6)).square().mean()
    loss.backward()
    return loss
