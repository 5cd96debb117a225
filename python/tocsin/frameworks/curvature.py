"""Second-order diagnostics of one batch, where the script asks for them: what is steep, how noisy the gradient is, and whether steps are
too long (the quantities of Cockpit, Schneider, Dangel and Hennig 2021). PyTorch alone::

    curvature = Curvature(hook, model)      # from tocsin.curvature import Curvature
    for step, (x, y) in enumerate(loader):
        batch = lambda: F.cross_entropy(model(x), y, reduction="none")    # a loss per sample
        if step % 100 == 0:
            curvature.measure(batch)
        with curvature.step(batch, when=step % 100 == 0):
            optimizer.step()

What is measured is returned and logged, and any rule may look at it: ``{name: too_long, select: 'metric("step/alpha")', when: 'mean(value) > 0.5',
window: last 500 steps}``. It costs about 40 backward passes of the batch, and twice the memory of its graph; the training itself sees nothing of it.
"""

import contextlib
import math
from typing import Any, Callable, Dict, Iterator, List, Optional

Closure = Callable[[], Any]
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Curvature:
    """Of one model. ``closure`` gives the loss of the present batch: one number, or one per sample, which noise is measured of. It is called
    apart from the training: the same random numbers each time, buffers put back, hooks of modules left out. What fails is counted
    (``stats()["hook_errors_total"]["curvature"]``) and measures nothing."""

    def __init__(self, hook: Any, model: Any, *, iterations: int = 20, probes: int = 8, groups: int = 8, rate: Optional[float] = None) -> None:
        """``iterations`` of the power method; ``probes``: random vectors of the trace; ``groups`` that the samples are divided into (noise is
        measured between them); ``rate``: the learning rate, which ``cabs`` needs."""
        self._hook, self._model, self.rate = hook, model, rate
        self._iterations, self._probes, self._groups = max(1, iterations), max(2, probes), max(2, groups)
        self._start: Optional[List[Any]] = None

    def measure(self, closure: Closure) -> Dict[str, float]:
        """Of the loss's mean L over the batch, with the Hessian H and the covariance Σ of gradients of single samples, N samples, gradient g of D elements:

        =============================  ==========================================================================================
        ``curvature/eigenvalue``       eigenvalue of H of the largest magnitude, with its sign (power method)
        ``curvature/trace``            tr(H) (Hutchinson 1990), and ``curvature/trace_error``, its standard error
        ``curvature/tic``              tr(Σ) / tr(H) (Thomas et al. 2020), where tr(H) is positive
        ``noise/norm_test``            √(tr(Σ) / N) / ‖g‖ (Byrd et al. 2012)
        ``noise/inner_product_test``   √(Var(gᵢ·g) / N) / ‖g‖² (Bollapragada, Byrd and Nocedal 2018)
        ``noise/orthogonality_test``   √(Var of gᵢ across g / N) / ‖g‖ (the same)
        ``noise/snr``                  mean over elements of g² / (Σ_dd / N)
        ``noise/scale``                tr(Σ) / ‖E g‖², a batch size (McCandlish et al. 2018), where the noise does not hide the gradient
        ``noise/cabs``                 rate · tr(Σ) / L, a batch size (Balles, Romero and Hennig 2017)
        ``noise/early_stopping``       1 − (N / D) Σ_d g_d² / Σ_dd: positive when the gradient is no more than noise (Mahsereci et al. 2017)
        =============================  ==========================================================================================
        """
        return self._contained(lambda: self._measure(closure))

    @contextlib.contextmanager
    def step(self, closure: Closure, *, when: bool = True) -> Iterator[Dict[str, float]]:
        """Around ``optimizer.step()``. ``step/alpha``: where the step ended on the parabola through both losses and slopes of this batch: −1
        where it began, 0 in its minimum, 1 as high on the other side; not told where there is no minimum ahead.
        ``step/l2``: length of the update, ``step/from_start_l2``: distance from where the parameters were at the first call."""
        told: Dict[str, float] = {}
        before = self._contained(lambda: self._stand(closure)) if when else {}
        yield told
        if before:
            told.update(self._contained(lambda: self._compare(closure, before)))

    def _contained(self, what: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
        if not self._hook.enabled:
            return {}
        try:
            told = what()
            numbers = {name: value for name, value in told.items() if isinstance(value, float) and math.isfinite(value)}
            if numbers:
                self._hook.log(numbers)
            return told
        except Exception as error:  # noqa: BLE001
            self._hook.errors.add("curvature", error)
            return {}

    # ---- one batch

    def _measure(self, closure: Closure) -> Dict[str, float]:
        import torch
        with _apart(self._model):
            losses = closure()
            parameters = _trainable(self._model)
            gradients = torch.autograd.grad(losses.mean(), parameters, create_graph=True, allow_unused=True)
            used = [(parameter, gradient) for parameter, gradient in zip(parameters, gradients) if gradient is not None]
            parameters, gradients = [pair[0] for pair in used], [pair[1] for pair in used]
            told = self._of_hessian(parameters, gradients)
            if losses.numel() >= 4:
                told.update(self._of_noise(losses.reshape(-1), parameters, told["curvature/trace"]))
        return told

    def _of_hessian(self, parameters: List[Any], gradients: List[Any]) -> Dict[str, float]:
        import torch

        def times(vector: List[Any]) -> List[Any]:
            if not any(one.requires_grad for one in gradients):
                return [torch.zeros_like(one) for one in vector]  # the loss is linear
            out = torch.autograd.grad(gradients, parameters, vector, retain_graph=True, allow_unused=True)
            return [torch.zeros_like(one) if made is None else made for one, made in zip(vector, out)]

        vector, eigenvalue = [torch.randn_like(one) for one in parameters], 0.0
        for _ in range(self._iterations):
            size = math.sqrt(_dot(vector, vector))
            if size == 0:
                break
            vector = [one / size for one in vector]
            product = times(vector)
            eigenvalue, vector = _dot(vector, product), product
        traces = []
        for _ in range(self._probes):
            signs = [torch.randint_like(one, 0, 2) * 2 - 1 for one in parameters]
            traces.append(_dot(signs, times(signs)))
        trace = sum(traces) / len(traces)
        variance = sum((one - trace) ** 2 for one in traces) / (len(traces) - 1)
        return {"curvature/eigenvalue": eigenvalue, "curvature/trace": trace, "curvature/trace_error": math.sqrt(variance / len(traces))}

    def _of_noise(self, losses: Any, parameters: List[Any], trace: float) -> Dict[str, float]:
        import torch
        groups = min(self._groups, losses.numel())
        each = losses.numel() // groups  # samples of a group: what is left over is not looked at
        used = each * groups
        means = [_flat(torch.autograd.grad(losses[at * each:(at + 1) * each].mean(), parameters, retain_graph=True, allow_unused=True), parameters)
                 for at in range(groups)]
        rows = torch.stack(means)
        gradient = rows.mean(0)
        spread = rows - gradient
        variances = each * spread.square().sum(0) / (groups - 1)  # of single samples
        noise, squared = float(variances.sum()), float(gradient.square().sum())
        told = {}
        if squared > 0:
            along = spread @ gradient
            across = spread - along[:, None] * gradient / squared
            told["noise/norm_test"] = math.sqrt(noise / used / squared)
            told["noise/inner_product_test"] = math.sqrt(each * float(along.square().sum()) / (groups - 1) / used) / squared
            told["noise/orthogonality_test"] = math.sqrt(each * float(across.square().sum()) / (groups - 1) / used / squared)
        moved = variances > 0
        if bool(moved.any()):
            shares = gradient[moved].square() / (variances[moved] / used)
            told["noise/snr"] = float(shares.mean())
            told["noise/early_stopping"] = 1 - float(shares.mean())
        if squared - noise / used > 0:
            told["noise/scale"] = noise / (squared - noise / used)
        if self.rate is not None and float(losses.detach().mean()) > 0:
            told["noise/cabs"] = self.rate * noise / float(losses.detach().mean())
        if trace > 0:
            told["curvature/tic"] = noise / trace
        return told

    # ---- one update

    def _stand(self, closure: Closure) -> Dict[str, Any]:
        parameters = _trainable(self._model)
        copies = [one.detach().clone() for one in parameters]
        if self._start is None:
            self._start = copies
        loss, gradient = self._slope(closure, parameters)
        return {"loss": [loss], "gradient": gradient, "copies": copies}

    def _compare(self, closure: Closure, before: Dict[str, Any]) -> Dict[str, float]:
        import torch
        parameters = _trainable(self._model)
        update = torch.cat([(one.detach() - old).reshape(-1) for one, old in zip(parameters, before["copies"])])
        far = torch.cat([(one.detach() - old).reshape(-1) for one, old in zip(parameters, self._start or [])])
        told = {"step/l2": float(update.norm()), "step/from_start_l2": float(far.norm())}
        loss, gradient = self._slope(closure, parameters)
        alpha = _alpha(before["loss"][0], loss, float(before["gradient"] @ update), float(gradient @ update))
        if alpha is not None:
            told["step/alpha"] = alpha
        return told

    def _slope(self, closure: Closure, parameters: List[Any]) -> Any:
        import torch
        with _apart(self._model):
            loss = closure().mean()
            return float(loss.detach()), _flat(torch.autograd.grad(loss, parameters, allow_unused=True), parameters)


def _alpha(first: float, last: float, slope: float, last_slope: float) -> Optional[float]:
    """By the parabola next to two values and two slopes, one step apart (least squares, all four alike)."""
    import torch
    rows = torch.tensor([[1, 0, 0], [1, 1, 1], [0, 1, 0], [0, 1, 2]], dtype=torch.float64)
    values = torch.tensor([first, last, slope, last_slope], dtype=torch.float64)[:, None]
    _, linear, squared = torch.linalg.lstsq(rows, values).solution[:, 0].tolist()
    if not squared > 0 or not linear < 0:
        return None
    return 2 * squared / -linear - 1


def _trainable(model: Any) -> List[Any]:
    return [one for one in model.parameters() if one.requires_grad]


def _dot(left: List[Any], right: List[Any]) -> float:
    return float(sum((one.detach() * other.detach()).sum() for one, other in zip(left, right)))


def _flat(gradients: Any, parameters: List[Any]) -> Any:
    import torch
    return torch.cat([(torch.zeros_like(one) if gradient is None else gradient).detach().reshape(-1) for gradient, one in zip(gradients, parameters)])


@contextlib.contextmanager
def _apart(model: Any) -> Iterator[None]:
    """A pass that leaves no trace: random numbers, buffers and what hooks of modules would see stay as they are."""
    import torch
    modules = list(model.modules())
    tables = [(module, name, getattr(module, name)) for module in modules for name in _HOOKS if hasattr(module, name)]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    devices = sorted({one.device.index for one in model.parameters() if one.is_cuda and one.device.index is not None})
    with torch.random.fork_rng(devices=devices), torch.enable_grad():
        for module, name, table in tables:
            setattr(module, name, type(table)())
        try:
            yield
        finally:
            for module, name, table in tables:
                setattr(module, name, table)
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
