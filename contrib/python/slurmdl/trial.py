# SPDX-License-Identifier: Apache-2.0
"""python -m slurmdl.trial: the program of a trial of slurmdl.run(function).

The result of the function, a number or a dictionary of numbers by name, is logged at the end of the segment, unless the
function returns nothing and logs the metric itself.
"""

import inspect
import numbers
import os
import sys
from typing import Any, Callable, Dict

from ._slurmdl import Error
from .runs import Run, init
from .source import NAME, function_of
from .space import takes_run


def arguments_of(function: Callable[..., Any], run: Run) -> Dict[str, Any]:
    """The function's arguments: the trial's hyperparameters; None for one that is inactive."""
    flat = run.hp.as_dict()
    result: Dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if takes_run(parameter):
            result["run"] = run
        elif parameter.name in flat:
            result[parameter.name] = flat.pop(parameter.name)
        elif parameter.kind == parameter.VAR_KEYWORD:
            result.update(flat)
        elif parameter.default is parameter.empty and parameter.kind != parameter.VAR_POSITIONAL:
            result[parameter.name] = None
    return result


def log_result(run: Run, result: Any) -> None:
    """Log the result of a function."""
    if result is None:
        return
    metric = os.environ.get("DL_METRIC", "result")
    values = result if isinstance(result, dict) else {metric: result}
    if metric == "result" and values and metric not in values:
        names = ", ".join(map(str, values))
        raise Error(f"the function returned {names}: run(function, metric={next(iter(values))!r}) says which one counts")
    for name, value in values.items():
        if not isinstance(value, numbers.Number) and not hasattr(value, "__float__"):
            raise Error(f"the function returned {type(value).__name__} for '{name}': it must be a number")
    run.log({name: float(value) for name, value in values.items()}, run.length)


def main() -> None:
    if NAME not in os.environ:
        raise SystemExit(f"slurmdl.trial: {NAME} is not set: slurmdl.run(function) starts this")
    with init() as run:
        run.seed_all()
        function = function_of(os.environ)
        log_result(run, function(**arguments_of(function, run)))


if __name__ == "__main__":
    try:
        main()
    except Error as error:
        sys.exit(f"slurmdl: {error}")
