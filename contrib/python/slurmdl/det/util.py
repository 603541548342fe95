# SPDX-License-Identifier: Apache-2.0
"""The functions of determined.util that scripts use."""

import json
from typing import Any, Dict, Optional


def json_encode(obj: Any, indent: Optional[str] = None, sort_keys: bool = False) -> str:
    """JSON; numpy arrays and numbers become lists and numbers, other unknown types their text."""

    def plain(x: Any) -> Any:
        return x.tolist() if hasattr(x, "tolist") else str(x)

    return json.dumps(obj, indent=indent, sort_keys=sort_keys, default=plain)


def is_numerical_scalar(n: Any) -> bool:
    return isinstance(n, (int, float)) or (hasattr(n, "__float__") and not getattr(n, "shape", ()))


def merge_dicts(base_dict: Dict[Any, Any], source_dict: Dict[Any, Any]) -> Dict[Any, Any]:
    """base_dict updated with source_dict, recursively."""
    for key, value in source_dict.items():
        inner = base_dict.get(key)
        base_dict[key] = merge_dicts(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return base_dict
