# SPDX-License-Identifier: Apache-2.0
"""Hydra's plug-in `hydra/sweeper: slurmdl`; Hydra imports it with every program, so slurmdl comes only with a sweep."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from hydra.core.config_store import ConfigStore
from hydra.errors import CompactHydraException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class SlurmdlSweeperConf:
    """The arguments of slurmdl.run(); 'keys' are further keys of dl-experiment(5), 'params' overrides with ranges."""

    _target_: str = "hydra_plugins.slurmdl_sweeper.SlurmdlSweeper"
    local: bool = False
    searcher: str = "auto"
    metric: Any = "result"
    smaller_is_better: Any = True
    max_trials: Optional[int] = None
    max_length: Optional[int] = None
    workers: Optional[int] = None
    keys: Dict[str, Any] = field(default_factory=dict)
    params: Dict[str, Any] = field(default_factory=dict)


ConfigStore.instance().store(group="hydra/sweeper", name="slurmdl", node=SlurmdlSweeperConf, provider="slurmdl")


class SlurmdlSweeper(Sweeper):
    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.context, self.config = hydra_context, config

    def sweep(self, arguments: List[str]) -> Any:
        import slurmdl.hydra

        try:
            return slurmdl.hydra.sweep(self.context, self.config, self.settings, arguments)
        except slurmdl.Error as error:
            # Hydra prints this as one line
            raise CompactHydraException(f"slurmdl: {error}") from None
