"""The loops that the hook's cost is measured on: PyTorch, one thread, small enough for a core's caches to matter."""
import collections
import ctypes
import os

# torch.set_num_threads() says nothing to OpenBLAS (Debian's torch), whose threads spin while they wait for each other: one
# that another thread delays for a moment stops all, and the waiting counts as processor time.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import torch  # noqa: E402

torch.set_num_threads(1)
FUNCTIONS = {name: value for name, value in vars(torch.nn.functional).items() if callable(value)}  # before a hook replaces some
torch.set_flush_denormal(True)  # the losses become tiny in a long run; that must not make steps slow


def keep_the_heap():
    """The C library's heap does not shrink any more. Otherwise a loop gives its activations' memory back and takes it again at
    every step: on the convolutional one that is 1 000 to 1 500 page faults, 2 to 3 ms of 10, by where its heap happens to end."""
    c_library = ctypes.CDLL(None)
    if hasattr(c_library, "mallopt"):  # glibc's
        for parameter, value in ((-1, 2**31 - 1), (-2, 64 << 20), (-3, 32 << 20)):  # trim threshold, top pad, mmap threshold
            c_library.mallopt(parameter, value)


class Transformer(torch.nn.Module):
    """Two encoder layers over an embedding: 28 tensors, about half a million parameters."""

    def __init__(self, width=128, heads=4, vocabulary=512):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, width)
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


class Convolutional(torch.nn.Module):
    """Six convolutions with batch normalisation, as a small image classifier has: 26 tensors."""

    def __init__(self, width=32):
        super().__init__()
        layers, channels = [], 3
        for i in range(6):
            layers += [torch.nn.Conv2d(channels, width, 3, padding=1, stride=1 + i % 2), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
            channels = width
        self.body = torch.nn.Sequential(*layers)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, images):
        return self.head(self.body(images).mean((2, 3)))


class Loop:
    """A model, its optimizer and a batch that it is trained on again and again."""

    def __init__(self, model, optimizer, batch, loss):
        self.model, self.optimizer, self.batch = model, optimizer, batch
        self._loss = loss

    def loss(self):
        return self._loss(self.model, self.batch)


class Installed:
    """What was put into a loop's model and its parts, into its optimizer and in the place of torch's functions: taken out, and put
    back as it was then."""

    def __init__(self, loop):
        self._loop = loop
        self._taken = []  # (object, name, value)

    def take(self):
        places = [(part, name) for part in self._loop.model.modules() for name in ("_forward_pre_hooks", "_forward_hooks")]
        places += [(self._loop.optimizer, name) for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")]
        for owner, name in places:
            hooks = getattr(owner, name, None)
            if hooks is not None and next(iter(hooks), None) is not None:
                self._replace(owner, name, collections.OrderedDict())
        if "step" in self._loop.optimizer.__dict__:  # torch 1.13
            self._taken.append((self._loop.optimizer, "step", self._loop.optimizer.__dict__.pop("step")))
        for name, function in FUNCTIONS.items():
            if getattr(torch.nn.functional, name) is not function:
                self._replace(torch.nn.functional, name, function)

    def put(self):
        for owner, name, value in self._taken:
            owner.__dict__[name] = value
        self._taken = []

    def _replace(self, owner, name, value):
        self._taken.append((owner, name, getattr(owner, name)))
        owner.__dict__[name] = value


def transformer():
    torch.manual_seed(0)
    model = Transformer()
    return Loop(model, torch.optim.Adam(model.parameters(), lr=1e-4), torch.randint(0, 512, (8, 32)),
                lambda model, tokens: torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()))


def convolutional():
    torch.manual_seed(0)
    model = Convolutional()
    return Loop(model, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9),
                (torch.randn(16, 3, 24, 24), torch.randint(0, 10, (16,))),
                lambda model, batch: torch.nn.functional.cross_entropy(model(batch[0]), batch[1]))


def perceptron(width=512, batch=1024):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
                                torch.nn.Linear(width, 10))
    return Loop(model, torch.optim.SGD(model.parameters(), lr=1e-3), (torch.randn(batch, 64), torch.randint(0, 10, (batch,))),
                lambda model, batch: torch.nn.functional.cross_entropy(model(batch[0]), batch[1]))
