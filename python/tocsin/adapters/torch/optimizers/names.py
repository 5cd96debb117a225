"""Names of the parameters that a PyTorch optimizer updates, and of its learning rate."""

from typing import Any, Callable, Dict, List, Sequence, Tuple

from tocsin.tensors.torch_names import is_wrapped, plain_name
from .zero import held, parts


class Names:
    """Of one model and its optimizer, which are asked for and not kept; either may be None or gone."""

    def __init__(self, model: Callable[[], Any], optimizer: Callable[[], Any], prefix: str) -> None:
        self._model, self._optimizer = model, optimizer
        self.prefix = prefix
        self.rate = prefix + "learning_rate"
        self.known: Dict[int, str] = {}  # by id() of the model's parameters, as it named them last

    def keep_apart(self, others: Sequence["Names"]) -> None:
        """Chooses names that none of ``others``, those of the loop's optimizers before, has."""
        named = self.named()
        if not others:
            return
        taken = {name for one in others for name, _ in one.named()}
        if taken.intersection(name for name, _ in named) and all(one._model() is not self._model() for one in others):
            self.prefix = _free(type(self._model()), len(others) + 1, {one.prefix for one in others})
            self.rate = self.prefix + "learning_rate"
        else:
            self.rate = f"optimizer{len(others) + 1}.learning_rate"

    def named(self) -> List[Tuple[str, Any]]:
        """Trainable parameters of the optimizer, by the names that the model gives them. Of a model
        that is gone (a script may keep its parts only) by the names that it gave them last."""
        optimizer = self._optimizer()
        if optimizer is None:
            return []
        mine = {id(parameter): parameter for parameter in held(optimizer) if parameter.requires_grad}
        pieces = parts(optimizer)
        if pieces is not None:
            mine = {key: pieces[key] for key in mine if key in pieces}
        model = self._model()
        if model is not None:
            wrapped = is_wrapped(model)
            self.known = {id(parameter): self.prefix + plain_name(name, wrapped) for name, parameter in model.named_parameters()}
        if self.known:
            return [(name, mine[key]) for key, name in self.known.items() if key in mine]
        return [(f"{self.prefix}group{i}.parameter{j}", parameter)
                for i, group in enumerate(optimizer.param_groups)
                for j, parameter in enumerate(group["params"]) if parameter.requires_grad]


def _free(kind: type, number: int, taken: Any) -> str:
    """A prefix for a model of this class: the class's name if it is the script's own."""
    if kind.__module__.split(".")[0] != "torch" and kind.__name__ + "." not in taken:
        return kind.__name__ + "."
    return f"model{number}."
