"""Small networks of the usual kinds. What is applied is a module, so that the hook sees it."""
import torch
from torch import nn


def mlp(inputs, width, outputs, depth=2, activation=nn.ReLU, norm=False, dropout=0.0):
    """Linear layers with an activation behind each but the last."""
    layers, size = [], inputs
    for _ in range(depth):
        layers.append(nn.Linear(size, width))
        if norm:
            layers.append(nn.BatchNorm1d(width))
        layers.append(activation())
        if dropout:
            layers.append(nn.Dropout(dropout))
        size = width
    return nn.Sequential(*layers, nn.Linear(size, outputs))


def conv(width, norm=False, classes=10):
    """Two convolutions with pooling, then a classifier."""
    def block(inputs, outputs):
        middle = [nn.BatchNorm2d(outputs)] if norm else []
        return [nn.Conv2d(inputs, outputs, 3, padding=1), *middle, nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(1, width), *block(width, 2 * width), nn.Flatten(), nn.Linear(8 * width, classes))


class Residual(nn.Module):
    """x + what two normalised convolutions make of it."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(x + self.body(x))


def resnet(width, classes=10):
    """A small residual network."""
    return nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), Residual(width), Residual(width),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, classes))


class Recurrent(nn.Module):
    """A recurrent network over rows, a classifier on its last state."""

    def __init__(self, cell, inputs, width, classes):
        super().__init__()
        self.cell = cell(inputs, width, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Letters(nn.Module):
    """A causal transformer over letters."""

    def __init__(self, kinds, width, heads=2, layers=1, length=24):
        super().__init__()
        self.embed = nn.Embedding(kinds, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, kinds)
        self.register_buffer("mask", torch.triu(torch.full((length, length), float("-inf")), 1), persistent=False)

    def forward(self, x):
        return self.head(self.norm(self.body(self.embed(x) + self.place, self.mask)))


class Attends(nn.Module):
    """A transformer over the rows of an image, averaged into a class."""

    def __init__(self, width, classes=10):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.place = nn.Parameter(torch.randn(8, width) * 0.02)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True), 1)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(self.embed(x) + self.place).mean(1))


def autoencoder(width, inner):
    """Images of 64 points through a narrow middle."""
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, inner), nn.ReLU(),
                         nn.Linear(inner, width), nn.ReLU(), nn.Linear(width, 64), nn.Tanh())
