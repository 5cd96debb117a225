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


def test_parts_that_do_not_train_are_an_issue(out, judged):
    fired = judged("[exploding_tensor]")
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model[0].parameters())
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(4, 6)).square().mean().backward()
        optimizer.step()
    hook.close()
    assert fired() == ["training_preflight"]


def test_a_dead_generator_is_seen(out, judged):
    """No unit of it is ever active: every gradient before them is zero."""
    fired = judged("[vanishing_gradient]")
    generator = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 6))
    critic = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    with torch.no_grad():
        generator[0].weight.zero_()
        generator[0].bias.fill_(-1.0)
    optimizers = [torch.optim.Adam(model.parameters()) for model in (critic, generator)]
    hook = tocsin.watch(critic, optimizers[0], name="critic", out=out, capture={"every": "1 step", "overhead": "100%"})
    tocsin.watch(generator, optimizers[1], name="generator")
    for _ in range(6):
        for sign, optimizer in zip((1, -1), optimizers):
            optimizer.zero_grad()
            (sign * critic(generator(torch.randn(4, 3))).mean()).backward()
            optimizer.step()
    hook.close()
    assert "vanishing_gradient" in fired()
