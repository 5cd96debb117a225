"""What a rule gives as its reason: the first thing that went wrong, however small the model."""
import torch

import tocsin


def test_the_loss_that_became_infinite_comes_before_the_tensor_of_a_later_step(out, server):
    """Steps of a few microseconds: nine of them end before anything is sent, and tensors are captured every tenth."""
    one = server(f"transport: {{journal: {out}}}\nrules: [exploding_tensor]\nhttp: {{listen: '127.0.0.1:0'}}\n")
    one.wait_for("ready")
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):  # torch's first steps are slow
        model(torch.randn(4, 2)).square().mean().backward()
        optimizer.step()
    hook = tocsin.watch(model, optimizer, out=out)
    for step in range(11):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 2)).square().mean()
        loss.backward()
        if step == 2:
            loss = loss * float("inf")
        if step >= 2:
            model.weight.grad[0, 0] = float("inf")
        hook.log(loss=loss)
        optimizer.step()
    hook.close()
    one.wait_for("job_ended")
    fired = one.all("issue_fired")
    assert len(fired) > 1
    assert "loss" in fired[0]["summary"] and "step 2" in fired[0]["summary"], [event["summary"] for event in fired]
