"""Which batch a watched model was given last, by weak reference."""
import copy
import gc
import pickle
import weakref

import torch

import tocsin

TORCH_2 = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)

    def forward(self, x, more=None):
        return self.second(self.first(x).relu())


def watched(model):
    hook = tocsin.watch(model, torch.optim.SGD(model.parameters(), 0.1))
    assert hook.enabled
    return hook, hook.sink.ledger.given


def test_the_tensors_of_the_last_pass_and_none_is_kept(out):
    model = Net()
    hook, given = watched(model)
    x = torch.randn(3, 4)
    model(x)
    assert given.tensors() == [x] and given.training and given.passes == 1
    assert given.rows(3) == [x] and given.rows(4) == []
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None and given.tensors() == []
    model.eval()
    with torch.no_grad():
        model(torch.randn(5, 4))
    assert not given.training and given.passes == 2
    hook.close()


def test_a_batch_may_be_nested(out):
    class Deep(Net):
        def forward(self, batch):
            return super().forward(batch["x"][0])

    model = Deep()
    hook, given = watched(model)
    batch = {"x": [torch.randn(3, 4)], "name": "first", "y": torch.arange(3)}
    model(batch)
    assert [id(one) for one in given.tensors()] == [id(batch["x"][0]), id(batch["y"])]
    hook.close()


def test_of_a_model_that_is_never_applied_itself_the_first_part_counts(out):
    model = Net()
    hook, given = watched(model)
    x = torch.randn(3, 4)
    for _ in range(2):
        model.second(model.first(x).relu())
        assert given.tensors() == [x]
    model.eval()
    with torch.no_grad():
        z = model.first(x)
        model.second(z)
    assert given.tensors() == [x] and given.passes == 3
    model.train()
    model(x)  # from now on the parts are no models
    passes = given.passes
    model.first(x)
    assert given.passes == passes
    assert not model.first._forward_pre_hooks or passes == 4
    hook.close()


def test_passes_whose_loss_is_passed_over_are_not_looked_at(out):
    model = Net()
    hook, given = watched(model)
    model(torch.randn(3, 4))
    hook.sink.ledger.skip = 1
    model(torch.randn(3, 4))
    assert given.passes == 1 and not given.tensors()  # those of the pass before are not this one's
    with torch.no_grad():
        kept = torch.randn(3, 4)
        model(kept)  # its loss is another's: it is not passed over
    assert given.passes == 2 and given.tensors()[0] is kept
    hook.close()


def test_a_copy_and_a_pickled_model_have_none_of_it(out):
    model = Net()
    hook, given = watched(model)
    other = pickle.loads(pickle.dumps(model))
    for one in (copy.deepcopy(model), other):
        one(torch.randn(3, 4))
    assert given.passes == 0
    hook.close()
    assert not any(type(hook).__name__ == "_Begins" for one in (model, model.first) for hook in one._forward_pre_hooks.values())
