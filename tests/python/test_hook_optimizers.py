"""Loops with several optimizers: a GAN, two optimizers of one model."""
import pytest
import torch

from tests.support.hook_support import Telemetry, wire

import tocsin


class Generator(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 6))


class Critic(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


class Gan:
    def __init__(self):
        torch.manual_seed(0)
        self.generator, self.critic = Generator(), Critic()
        self.of_generator = torch.optim.Adam(self.generator.parameters(), lr=1e-3)
        self.of_critic = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def update_critic(self):
        self.of_critic.zero_grad()
        loss = self.critic(self.generator(torch.randn(4, 3)).detach()).mean() - self.critic(torch.randn(4, 6)).mean()
        loss.backward()
        return loss

    def update_generator(self):
        self.of_generator.zero_grad()
        loss = -self.critic(self.generator(torch.randn(4, 3))).mean()
        loss.backward()
        return loss

    def watch(self, out, named=False, **options):
        hook = tocsin.watch(self.critic, self.of_critic, out=out, name="critic" if named else None, **options)
        assert tocsin.watch(self.generator, self.of_generator, name="generator" if named else None) is hook
        return hook

    def fit(self, hook, steps, critic_updates=1):
        for _ in range(steps):
            for _ in range(critic_updates):
                hook.log(critic_loss=self.update_critic())
                self.of_critic.step()
            hook.log(generator_loss=self.update_generator())
            self.of_generator.step()


def sampled(telemetry):
    """Name of a tensor -> steps at which it was captured."""
    out = {}
    for frame in telemetry.of_kind(wire.SUMMARY):
        for row in frame.rows:
            out.setdefault(telemetry.names[row["name"]], []).append(frame.header["step"])
    return out


def test_the_two_of_a_gan_share_the_steps_and_both_are_on_the_grid(out):
    gan = Gan()
    hook = gan.watch(out, named=True, capture={"overhead": "100%", "every": "5 steps"})
    gan.fit(hook, 12)
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(12))
    steps = sampled(telemetry)
    for name in ("gradient/critic.0.weight", "gradient/generator.0.weight", "critic.2.bias", "generator.2.bias"):
        assert steps[name] == [0, 5, 10], name
    for loss in ("critic_loss", "generator_loss"):
        assert [step for _, step, _ in telemetry.scalars(loss)] == list(range(12))
    assert [value for _, _, value in telemetry.scalars("generator.learning_rate")] == [1e-3]
    assert hook.stats()["hook_errors_total"] == {}


def test_names_that_collide_are_kept_apart_by_the_name_of_the_class(out):
    gan = Gan()
    hook = gan.watch(out, capture={"overhead": "100%", "every": "1 step"})
    gan.fit(hook, 1)
    hook.close()
    names = set(sampled(Telemetry(out)))
    assert {"0.weight", "gradient/0.weight", "Generator.0.weight", "gradient/Generator.0.weight"} <= names


def test_one_model_with_two_optimizers_needs_no_names(out):
    torch.manual_seed(0)
    gan = Gan()
    model = torch.nn.ModuleDict({"generator": gan.generator, "critic": gan.critic})
    hook = tocsin.watch(model, gan.of_critic, out=out, capture={"overhead": "100%", "every": "1 step"})
    tocsin.watch(model, gan.of_generator)
    gan.fit(hook, 4)
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2, 3]
    assert {"gradient/critic.0.weight", "gradient/generator.0.weight"} <= set(telemetry.summaries(step=3))
    assert telemetry.lifecycles("preflight") == []
    assert len(telemetry.scalars("learning_rate")) == len(telemetry.scalars("optimizer2.learning_rate")) == 1


def test_who_updates_seldom_is_captured_when_it_does(out):
    """Five updates of the critic for one of the generator, whose steps (4, 9, …) are never on the grid of 10."""
    gan = Gan()
    hook = gan.watch(out, named=True, capture={"overhead": "100%", "every": "10 steps"})
    gan.fit(hook, 8, critic_updates=5)
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(40))
    steps = sampled(telemetry)
    assert steps["gradient/critic.0.weight"] == [0, 10, 20, 30]
    assert steps["gradient/generator.0.weight"] == steps["generator.0.weight"] == [4, 14, 24, 34]
    row = [row for row in telemetry.of_kind(wire.SUMMARY)[-1].rows if telemetry.names[row["name"]] == "generator.0.weight"][0]
    assert row["meta"] & 0xffff == wire.DTYPES["f32"] | wire.ROLES["weight"] << 8


@pytest.mark.parametrize("step_by, steps", [("generator", 8), ("manual", 4)])
def test_the_script_says_who_counts(out, step_by, steps):
    gan = Gan()
    hook = gan.watch(out, named=True, capture={"overhead": "100%", "every": "1 step", "step_by": step_by})
    for _ in range(4):
        gan.fit(hook, 2)
        if step_by == "manual":
            hook.step()
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(steps))
    assert sampled(telemetry)["gradient/critic.0.weight"] == list(range(steps)), "once a step at most"
