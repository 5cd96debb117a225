#!/usr/bin/env python3
"""What the hook's statistics cost on a GPU. Says that there is none, and exits 0, where there is none.

Prints one line per figure, `name value unit ratio baseline target pass|miss`, and exits 1 when one is missed:

  gpu_read_<type>_<shape>     GB/s of the statistics of one large tensor and of a model's tensors, beside a plain
                              torch.sum over the same bytes in turn (target >= 0.7)
  gpu_launches                kernels and copies of a sampled step, counted by torch's profiler (target <= 5)
  gpu_overhead_<model>_<grid> extra time per step with the hook, at every 10th step (target <= 1 %) and at every step
                              (<= 5 %), on transformers of 100 M (binary32, autocast) and 1 B (bf16) parameters
  gpu_sample_<what>           time of the training thread and device for all gradients and weights of the small one: the
                              hook, torch.linalg norms per tensor, and histograms as wandb.watch takes them

Usage: bench/gpu_bench.py [--quick] [--device cuda|cpu] [--tiny] [--out DIRECTORY or kafka://host:port]
`--device cpu --tiny` runs every line of this on small tensors in host memory, with Triton's interpreter where Triton is
installed: it shows that the script works, its figures mean nothing and nothing is judged.
"""
import argparse
import collections
import importlib.util
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "python"))

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("--quick", action="store_true", help="fewer repetitions; for a first look")
arguments.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
arguments.add_argument("--tiny", action="store_true", help="small tensors and models")
arguments.add_argument("--out", help="where the hook writes; default: a temporary journal")
arguments = arguments.parse_args()
if arguments.device == "cpu":  # before Triton is imported
    os.environ["TOCSIN_DEVICE_KERNEL"] = "triton"
    if importlib.util.find_spec("triton") is not None:
        os.environ["TRITON_INTERPRET"] = "1"

try:
    import torch
except ImportError:
    torch = None

missed = False


def report(name, value, unit, ratio=None, baseline="-", target="-", passed=None):
    global missed
    judged = passed is not None and arguments.device == "cuda" and not arguments.tiny
    missed = missed or (judged and not passed)
    verdict = "-" if not judged else "pass" if passed else "miss"
    print(f"{name} {value:.4g} {unit} {'-' if ratio is None else f'{ratio:.5f}'} {baseline} {target} {verdict}", flush=True)


def finish():
    if arguments.device == "cuda":
        torch.cuda.synchronize()


def seconds(function, repeats):
    """Of one call, the device's work with it."""
    finish()
    begin = time.perf_counter()
    for _ in range(repeats):
        function()
    finish()
    return (time.perf_counter() - begin) / repeats


def in_turn(functions, repeats, rounds):
    """Medians of each, measured in turn, so that clocks and other load meet all of them."""
    for function in functions:
        seconds(function, 1 if arguments.tiny else 2)
    rounds = [[seconds(function, repeats) for function in functions] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*rounds)]


# ---- models

class Transformer(torch.nn.Module if torch else object):
    def __init__(self, width, layers, vocabulary):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, width)
        layer = torch.nn.TransformerEncoderLayer(width, max(width // 64, 1), 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


def make(which):
    """(model, optimizer, function that gives a batch's loss)"""
    width, layers, vocabulary, batch, length, dtype = {
        "100m": (768, 10, 16384, 16, 512, torch.float32), "1b": (2048, 18, 16384, 8, 512, torch.bfloat16)}[which]
    if arguments.tiny:
        width, layers, vocabulary, batch, length = 16, 1, 32, 2, 8
    torch.manual_seed(0)
    model = Transformer(width, layers, vocabulary).to(arguments.device, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **({"fused": True} if arguments.device == "cuda" else {}))
    tokens = torch.randint(0, vocabulary, (batch, length), device=arguments.device)

    def loss():
        with torch.autocast(arguments.device, torch.bfloat16, enabled=dtype is torch.float32):
            return torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())

    return model, optimizer, loss


def captured(model):
    """All that a sampled step measures."""
    return [tensor for parameter in model.parameters() for tensor in (parameter.detach(), parameter.grad)]


# ---- figures

def measure(tensors):
    """Statistics of the tensors as the hook has them made, without reading them back."""
    from tocsin.tensors.device_counts import DeviceCounts
    from tocsin.tensors import torch_device

    counts = DeviceCounts()
    made = torch_device.device_rows([(i, tensor, 0) for i, tensor in enumerate(tensors)], None, counts)
    assert made is not None and not counts.skipped, counts.as_dict()
    return made, counts


def read_back(made):
    rows, ready = made
    if ready is not None:
        ready.synchronize()
    return rows()


class Sampling:
    """Measures the tensors at each call and reads the numbers of some calls ago, so that the device has work all the time, as
    a plain sum has that is called again and again."""

    def __init__(self, tensors, ahead=4):
        self.tensors, self.ahead, self.made = tensors, ahead, collections.deque()

    def __call__(self):
        self.made.append(measure(self.tensors)[0])
        if len(self.made) > self.ahead:
            read_back(self.made.popleft())


def bandwidth():
    elements = 1 << (13 if arguments.tiny else 28)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        word = str(dtype).rsplit(".", maxsplit=1)[-1]
        buffer = torch.randn(elements, device=arguments.device).to(dtype)
        sizes = [elements // 4] * 3 + [elements // 64] * 15 + [elements // 1024] * 15
        for shape, tensors in (("one", [buffer]), ("many", list(buffer[:sum(sizes)].split(sizes)))):
            def plain(whole=buffer[:sum(tensor.numel() for tensor in tensors)]):
                whole.sum()

            ours, bare = in_turn([Sampling(tensors), plain], 1 if arguments.tiny else 20, 1 if arguments.tiny else 3 if arguments.quick else 9)
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            report(f"gpu_read_{word}_{shape}", size / ours / 1e9, "GB/s", bare / ours, f"sum_{size / bare / 1e9:.4g}", ">=0.7", bare / ours >= 0.7)


def launches(model):
    tensors = captured(model)
    read_back(measure(tensors)[0])  # compiled, and the map of chunks is there
    if arguments.device == "cuda":
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as profile:
            made, counts = measure(tensors)
            finish()
        number = sum(1 for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    else:
        made, counts = measure(tensors)
        number = counts.launches
    read_back(made)
    report("gpu_launches", number, f"per_sampled_step_of_{len(tensors)}_tensors", None, "-", "<=5", 0 < number <= 5)
    print(f"# kernels: {counts.kernels}", flush=True)


def block(optimizer, loss, steps, hook):
    def train():
        for _ in range(steps):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            if hook is not None:
                hook.log(loss=value)
            optimizer.step()
            if hook is not None and hook.should_stop():
                raise SystemExit("stopped")
    return seconds(train, 1) / steps


def overhead(which, model, optimizer, loss, out):
    import tocsin

    for grid, target in ((10, 0.01), (1, 0.05)):
        hook = tocsin.watch(model, optimizer, out=out, run=f"{which}-{grid}", capture={"every": f"{grid} steps", "overhead": "100%"})
        assert hook.enabled, hook.stats()
        steps = grid if arguments.tiny else 20
        block(optimizer, loss, steps, hook)
        pairs = []
        for i in range(1 if arguments.tiny else 5 if arguments.quick else 15):
            times = {}
            for with_hook in ((False, True) if i % 2 else (True, False)):
                hook.sink.active = with_hook  # one model: the other costs a call that returns at once
                times[with_hook] = block(optimizer, loss, steps, hook if with_hook else None)
            pairs.append((times[False], times[True] - times[False]))
        hook.sink.active = True
        hook.close(timeout=30)
        stats = hook.stats()
        device = stats["device"]
        assert device["skipped_total"] == {} and not stats["hook_errors_total"], stats
        base, extra = statistics.median(base for base, _ in pairs), statistics.median(extra for _, extra in pairs)
        word = "every_step" if grid == 1 else f"every_{grid}th"
        report(f"gpu_overhead_{which}_{word}", 1e3 * base, "ms", extra / base, "loop_without_hook", f"<={target}", extra / base <= target)
        report(f"gpu_device_time_{which}_{word}", 1e3 * device["seconds_total"] / max(device["batches_total"], 1), "ms_per_sample")


def norms(tensors):
    """torch.linalg per tensor, without a wait: stacked and copied once."""
    return torch.stack([torch.linalg.vector_norm(tensor).float() for tensor in tensors]).tolist()


def waiting_norms(tensors):
    return [(torch.linalg.vector_norm(tensor).item(), tensor.max().item()) for tensor in tensors]


def histograms(tensors):
    """What wandb.watch takes of each gradient and parameter: the range on the host, then a histogram of 64 bins."""
    out = []
    for tensor in tensors:
        flat = tensor.reshape(-1).float()
        low, high = flat.min().item(), flat.max().item()
        out.append(torch.histc(flat, 64, low, high).cpu())
    return out


def samples(model):
    tensors = captured(model)
    others = {"linalg_norms": norms, "linalg_norms_item": waiting_norms, "wandb_histograms": histograms}
    times = in_turn([Sampling(tensors), *(lambda function=function: function(tensors) for function in others.values())],
                    1 if arguments.tiny else 3, 1 if arguments.tiny else 3 if arguments.quick else 7)
    report("gpu_sample_tocsin", 1e3 * times[0], "ms")
    for name, taken in zip(others, times[1:]):
        report("gpu_sample_" + name, 1e3 * taken, "ms", taken / times[0], "tocsin")


def main():
    if torch is None or (arguments.device == "cuda" and not torch.cuda.is_available()):
        print(f"no GPU here ({'torch is not installed' if torch is None else f'torch {torch.__version__} sees no CUDA device'}): nothing was measured")
        return 0
    if arguments.device == "cuda":
        print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}")
    else:
        from tocsin.adapters.torch import capture

        capture.on_host = lambda tensor: False
        print(f"# tensors in host memory, torch {torch.__version__}: no figure means anything")
    with tempfile.TemporaryDirectory() as directory:
        bandwidth()
        for which in ("100m", "1b"):
            model, optimizer, loss = make(which)
            print(f"# {which}: {sum(parameter.numel() for parameter in model.parameters()) / 1e6:.1f} M parameters, {len(list(model.parameters()))} tensors")
            block(optimizer, loss, 2, None)
            if which == "100m":
                launches(model)
                samples(model)
            overhead(which, model, optimizer, loss, arguments.out or os.path.join(directory, "journal"))
            del model, optimizer, loss
            if arguments.device == "cuda":
                torch.cuda.empty_cache()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
