# SPDX-License-Identifier: Apache-2.0
"""The hyperparameters of a run: a mapping whose names may be nested."""

import json
import os
import re
import sys
from typing import Any, Dict, Iterator, Mapping, Optional

_PREFIX = "DL_HP_"


def _value(text: str) -> Any:
    """Convert the text of a variable: 3, 0.1, true, or a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _variable(name: str) -> str:
    return re.sub("[^A-Za-z0-9]", "_", name)


class HParams(Mapping[str, Any]):
    """hp["optimizer.lr"], hp["optimizer"]["lr"] and hp.optimizer.lr are the same.

    The values are those that `dl run` chose for this trial.  Elsewhere they come from the variables DL_HP_NAME, where
    underscores stand for dots, so that a script can be tried by hand; hp then lists the names as the variables spell
    them.
    """

    def __init__(self, tree: Optional[Dict[str, Any]] = None, variables: Optional[Mapping[str, str]] = None) -> None:
        self._tree = tree
        self._variables = variables or {}

    @classmethod
    def of_environment(cls) -> "HParams":
        path = os.environ.get("DL_HPARAMS")
        if path and os.path.exists(path):
            # another member of the group may have put a pipe there
            with open(path, encoding="utf-8", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as f:
                return cls(json.load(f))
        start = len(_PREFIX)
        return cls(None, {k[start:]: v for k, v in os.environ.items() if k.startswith(_PREFIX)})

    def __getitem__(self, name: str) -> Any:
        if self._tree is None:
            return self._of_variables(name)
        value: Any = self._tree
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                raise KeyError(name)
            value = value[part]
        return HParams(value) if isinstance(value, dict) else value

    def _of_variables(self, name: str) -> Any:
        asked, name = name, _variable(name)
        if name in self._variables:
            return _value(self._variables[name])
        inner = {k[len(name) + 1 :]: v for k, v in self._variables.items() if k.startswith(name + "_")}
        if not inner:
            raise KeyError(f"{asked}: dl run sets it; by hand: {_PREFIX}{name}=VALUE python3 {os.path.basename(sys.argv[0])}")
        return HParams(None, inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no hyperparameter '{name}'") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree if self._tree is not None else self._variables)

    def __len__(self) -> int:
        return len(self._tree if self._tree is not None else self._variables)

    def __repr__(self) -> str:
        return f"HParams({self.as_dict()!r})"

    def as_dict(self) -> Dict[str, Any]:
        """Plain dictionaries, for functions that require them."""
        return {k: v.as_dict() if isinstance(v, HParams) else v for k, v in self.items()}

    def flat(self) -> Dict[str, Any]:
        """Without nesting: {"optimizer.lr": 0.1}."""
        result = {}
        for name, value in self.items():
            if isinstance(value, HParams):
                result.update({f"{name}.{k}": v for k, v in value.flat().items()})
            else:
                result[name] = value
        return result
