"""A small training whose recording is exported."""
import torch

import tocsin


def record(out, steps=3):
    """Losses and histograms of a small training: {step: (loss, weights)}."""
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture={
        "overhead": "100%", "collections": {"weights": {"every": "1 steps", "statistics": ["histogram"]}}})
    seen = {}
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        with torch.no_grad():
            model.weight[0, 0] = 0  # a zero, which no bucket of the histogram has
        seen[step] = float(loss), model.weight.detach().clone()
        hook.log(loss=loss)
        optimizer.step()
    hook.set_mode("eval")
    hook.log(accuracy=0.5)
    hook.step()
    hook.close()
    return hook, seen
