# SPDX-License-Identifier: Apache-2.0
"""Packages that only some calls need: imported on first use."""

import importlib
from typing import Any, Optional

from ._slurmdl import Error


def find(module: str) -> Optional[Any]:
    """The module, None if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise
        return None


def need(module: str, what: str) -> Any:
    """The module; if it is missing, slurmdl.Error names the package that 'what' needs."""
    found = find(module)
    if found is None:
        package = module.split(".")[0]
        raise Error(f"{what} needs {package}: pip install {package}")
    return found
