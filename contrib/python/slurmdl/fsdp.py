# SPDX-License-Identifier: Apache-2.0
"""PyTorch: FullyShardedDataParallel with the state of the bare model.

FullyShardedDataParallel keeps parameters in pieces of a few flat tensors. torch's own functions convert the state of
the model and the optimizer to shards by name and back; with numbers instead of names, as in an optimizer's
state_dict(), the checkpoint equals that of the bare model.  (fully_shard() needs none of this: its parameters are
DTensors.)
"""

from typing import Any, Dict, List, Optional

import torch


def _functions() -> Any:
    try:
        from torch.distributed.checkpoint import state_dict  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise TypeError("FullyShardedDataParallel needs torch 2.2 or newer: use fully_shard()") from None
    return state_dict


class FlatModel:
    """A model that is or contains a FullyShardedDataParallel module."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def state_dict(self) -> Any:
        return _functions().get_model_state_dict(self._model)

    def load_state_dict(self, state: Any) -> None:
        _functions().set_model_state_dict(self._model, state)


class FlatOptimizer:
    """The optimizer of such a model."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._model, self._optimizer = model, optimizer
        self._names: List[str] = []
        self._groups: List[Dict[str, Any]] = []

    def _read_names(self, groups: Any) -> None:
        """The names of its parameters in the order of the bare model's optimizer."""
        self._names = []
        for own, group in zip(self._optimizer.param_groups, groups):
            names = list(group["params"])
            if len(names) != len(own["params"]):
                # of flat parameters, which have an order of their own
                place = {name: i for i, name in enumerate(FlatModel(self._model).state_dict())}
                names.sort(key=lambda name: place[name])
            self._names += names

    def state_dict(self) -> Any:
        if not self._optimizer.state and not any(map(_is_flat_parameter, _parameters(self._optimizer))):
            return self._optimizer.state_dict()
        return self.made_state_dict()

    def made_state_dict(self) -> Any:
        """The same; an optimizer without a state gets one by a step that changes nothing."""
        state = _functions().get_optimizer_state_dict(self._model, self._optimizer)
        self._read_names(state["param_groups"])
        number = {name: i for i, name in enumerate(self._names)}
        self._groups = [{**g, "params": sorted(number[n] for n in g["params"])} for g in state["param_groups"]]
        return {"state": {number[name]: x for name, x in state["state"].items()}, "param_groups": self._groups}

    def check(self, state: Any) -> None:
        """After made_state_dict(): check that the groups are the same."""
        saved, own = ([len(g["params"]) for g in groups] for groups in (state["param_groups"], self._groups))
        if saved != own:
            raise ValueError(
                f"the parameter groups that were saved have {saved} parameters, those of the optimizer {own}"
            )

    def load_state_dict(self, state: Any) -> None:
        """After made_state_dict()."""
        self.check(state)
        if not state["state"]:
            self._optimizer.state.clear()
            for own, group in zip(self._optimizer.param_groups, state["param_groups"]):
                own.update({k: v for k, v in group.items() if k != "params"})
            return
        groups = [{**g, "params": [self._names[i] for i in g["params"]]} for g in state["param_groups"]]
        named = {"state": {self._names[i]: x for i, x in state["state"].items()}, "param_groups": groups}
        _functions().set_optimizer_state_dict(self._model, self._optimizer, named)


# ---- find such parts


def _is_flat_parameter(x: Any) -> bool:
    return bool(getattr(x, "_is_flat_param", False))


def _parameters(optimizer: Any) -> List[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def flat_models(part: Any) -> List[Any]:
    """Such models in a part, which may be a dict or a list."""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, (list, tuple)):
        return [m for p in part for m in flat_models(p)]
    if not isinstance(part, torch.nn.Module):
        return []
    return [part] if any(type(m).__name__ == "FullyShardedDataParallel" for m in part.modules()) else []


def _model_of(optimizer: Any, models: List[Any]) -> Optional[Any]:
    mine = {id(p) for p in _parameters(optimizer)}
    for model in models:
        if any(id(p) in mine for p in model.parameters()):
            return model
    if any(map(_is_flat_parameter, _parameters(optimizer))):
        raise TypeError("an optimizer of FullyShardedDataParallel is saved and restored with its model")
    return None


def adapted(part: Any, models: List[Any]) -> Any:
    """The part, with what belongs to these models replaced by FlatModel and FlatOptimizer."""
    if isinstance(part, dict):
        return {k: adapted(v, models) for k, v in part.items()}
    if isinstance(part, (list, tuple)):
        return [adapted(v, models) for v in part]
    if any(part is m for m in models):
        return FlatModel(part)
    if isinstance(part, torch.optim.Optimizer):
        model = _model_of(part, models)
        return part if model is None else FlatOptimizer(model, part)
    return part
