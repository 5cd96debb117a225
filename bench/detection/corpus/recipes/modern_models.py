"""Networks as they are built today, small: a decoder, a vision transformer, depthwise convolutions, low-rank adapters."""
import math

import torch
from torch import nn


class Attention(nn.Module):
    """Of several heads, with one projection for all three inputs."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weight = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        if self.causal:
            weight = weight + torch.triu(torch.full((length, length), float("-inf")), 1)
        return self.out((weight.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Normalised before attention and before the two layers with a GELU between them."""

    def __init__(self, width, heads, causal=False, dropout=0.0):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.up, self.gelu, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.first(x)))
        return x + self.dropout(self.down(self.gelu(self.up(self.second(x)))))


class Decoder(nn.Module):
    """A language model whose output layer shares the weights of its embedding."""

    def __init__(self, kinds, width, layers=2, length=24):
        super().__init__()
        self.embed, self.place = nn.Embedding(kinds, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, 4, causal=True, dropout=0.1) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, kinds, bias=False)
        for one in (self.embed, self.place):
            nn.init.normal_(one.weight, std=0.02)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.embed(x) + self.place.weight[:x.shape[1]])))


class Vision(nn.Module):
    """A vision transformer: patches of 2 × 2, a token for the class."""

    def __init__(self, width, layers=2, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, stride=2)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(torch.randn(17, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, 4, dropout=0.1) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


class Wide(nn.Module):
    """A depthwise convolution, then two layers over channels, around a residual path that starts closed."""

    def __init__(self, width):
        super().__init__()
        self.depth = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm, self.up, self.gelu, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-2))

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(self.gelu(self.up(y)))).permute(0, 3, 1, 2)


def wide(width, classes=10):
    """Two such blocks with a step down between them."""
    return nn.Sequential(nn.Conv2d(1, width, 2, stride=2), Wide(width), nn.Conv2d(width, 2 * width, 2, stride=2), Wide(2 * width),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(2 * width), nn.Linear(2 * width, classes))


class LowRank(nn.Module):
    """A frozen layer and what two thin matrices add to it; the second starts at zero."""

    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features))
        self.b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.a.T @ self.b.T * 2


def adapt(model):
    """Freezes everything and puts adapters around the inner layers."""
    model.requires_grad_(False)
    for block in model.blocks:
        block.attention.qkv, block.up = LowRank(block.attention.qkv), LowRank(block.up)
    return model


class Denoiser(nn.Module):
    """Says which noise was added: features and the time of diffusion (the last column), around a residual path."""

    def __init__(self, features, width):
        super().__init__()
        self.enter, self.time = nn.Linear(features, width), nn.Linear(16, width)
        self.body = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
                                   for _ in range(2)])
        self.leave = nn.Linear(width, features)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x):
        angle = x[:, -1:] * torch.exp(torch.linspace(0, 5, 8))
        h = self.enter(x[:, :-1]) + self.time(torch.cat([angle.sin(), angle.cos()], 1))
        for one in self.body:
            h = h + one(h)
        return self.leave(h)


class Forecast(nn.Module):
    """A GRU over a series, the next values from its last state."""

    def __init__(self, width, ahead):
        super().__init__()
        self.cell, self.head = nn.GRU(1, width, batch_first=True), nn.Linear(width, ahead)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Variational(nn.Module):
    """An autoencoder whose middle is drawn; gives back the image, and mean and log of the variance beside it."""

    def __init__(self, width, inner):
        super().__init__()
        self.inner = inner
        self.encode = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 2 * inner))
        self.decode = nn.Sequential(nn.Linear(inner, width), nn.ReLU(), nn.Linear(width, 64))

    def forward(self, x):
        mean, log = self.encode(x).split(self.inner, 1)
        drawn = mean + torch.randn_like(mean) * (0.5 * log).exp() if self.training else mean
        return torch.cat([self.decode(drawn), mean, log], 1)


class Segments(nn.Module):
    """Down, up again, and what was seen on the way down beside it: one number per point."""

    def __init__(self, width):
        super().__init__()
        def double(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.ReLU(),
                                 nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())
        self.down, self.middle = double(1, width), double(width, 2 * width)
        self.pool, self.up = nn.MaxPool2d(2), nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.join, self.head = double(2 * width, width), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        first = self.down(x)
        return self.head(self.join(torch.cat([first, self.up(self.middle(self.pool(first)))], 1)))
