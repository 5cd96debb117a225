"""How often the ledger is taken: a function of times alone."""
import pytest

from tocsin.adapters.torch.ledger import budget as torch_ledger_budget
from tocsin.adapters.torch.ledger.budget import Budget


def measured(step_seconds, cost, steps=20000):
    """Steps that are measured, of a loop with these times."""
    budget, now, taken = Budget(), 0.0, []
    for step in range(steps):
        if step % budget.every == 0:
            budget.begin(step, now)
            budget.add(cost)
            now += cost
            taken.append(step)
        now += step_seconds
    return taken, budget


def test_the_first_calls_are_all_taken():
    taken, _ = measured(1e-4, 1e-3)
    assert taken[:64] == list(range(64)) and len(taken) < 1000


@pytest.mark.parametrize("step,cost,every", (
    (1.0, 1e-3, 1),        # 0.1 %
    (0.1, 1e-3, 8),        # 0.2 % of it would be every fifth
    (0.05, 1e-3, 16),      # every tenth
    (0.01, 1e-3, 32),      # 0.5 % would be every 20th
    (1e-3, 1e-3, 256),     # 0.5 % would be every 200th
    (1e-4, 1e-3, 2048),
))
def test_a_share_of_the_time_is_spent(step, cost, every):
    taken, budget = measured(step, cost)
    assert budget.every == every and taken[-1] - taken[-2] == every
    assert all(one % every == 0 for one in taken[-5:])


def test_a_short_training_is_not_left_without():
    taken, budget = measured(5e-4, 2.5e-4, steps=600)
    assert budget.every == 2 and len(taken) == 64 + (600 - 64) // 2
    taken, budget = measured(5e-4, 2.5e-4, steps=20000)
    assert budget.every == 128 and budget.seconds < torch_ledger_budget.ALLOWANCE * 1.1 + 20000 / 128 * 2.5e-4


def test_a_step_of_5_ms_and_more_pays_its_share_alone():
    taken, budget = measured(6e-3, 2.5e-4, steps=600)
    assert budget.every == 16 and len(taken) < 100


def test_micro_batches_are_calls_of_one_step():
    """The first 64 steps are measured, of three calls each; of a step of many calls the first 256 calls."""
    for calls, wanted in ((3, 64), (16, 16)):
        budget, now, taken = Budget(), 0.0, []
        for step in range(400):
            if step % budget.every == 0:
                budget.begin(step, now)
                for _ in range(calls):
                    budget.add(1e-3)
                now += calls * 1e-3
                taken.append(step)
            now += 2e-2
        assert taken[:wanted] == list(range(wanted)) and len(taken) < wanted + 40, calls


def test_one_long_pause_changes_nothing():
    budget, now = Budget(), 0.0
    for step in range(4000):
        if step % budget.every == 0:
            budget.begin(step, now)
            budget.add(1e-3)
            now += 1e-3
        now += 1e-3 if step != 2048 else 100.0
    assert budget.every == 256
