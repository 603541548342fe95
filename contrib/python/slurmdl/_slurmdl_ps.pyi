# SPDX-License-Identifier: Apache-2.0
"""Types of the extension that is made of ../ext/ps."""

from typing import Any, Dict, Optional, Tuple, TypeVar

_PS = TypeVar("_PS", bound="ParameterServer")

class ParameterServer:
    def __new__(
        cls: type[_PS],
        role: Optional[str] = None,
        index: int = 0,
        servers: int = 0,
        workers: int = 0,
        dir: Optional[str] = None,
        address: Optional[str] = None,
        mode: int = 0,
        staleness: int = 0,
        save_every: int = 0,
        log_bytes: int = 0,
        timeout: float = 0.0,
        grace: float = 0.0,
    ) -> _PS: ...
    def serve(self) -> None: ...
    def stop(self) -> None: ...
    def table(
        self,
        name: str,
        n: int,
        row: int,
        rule: int,
        rate: float,
        momentum: float,
        decay: float,
        beta1: float,
        beta2: float,
        epsilon: float,
        low: float,
        high: float,
        seed: int,
        initial: Any,
        /,
    ) -> int: ...
    def rate(self, table: int, rate: float, /) -> None: ...
    def push(self, table: int, memory: Any, n: int, later: bool, /) -> int: ...
    def pull(self, table: int, memory: Any, n: int, later: bool, /) -> int: ...
    def push_pull(self, table: int, memory: Any, out: Any, n: int, /) -> int: ...
    def push_rows(self, table: int, ids: Any, n: int, memory: Any, row: int, later: bool, /) -> int: ...
    def pull_rows(self, table: int, ids: Any, n: int, memory: Any, row: int, later: bool, /) -> int: ...
    def wait(self, ticket: int, /) -> None: ...
    def clock(self) -> None: ...
    def save(self) -> None: ...
    def facts(self) -> Tuple[int, int, int, int, int, int]: ...
    def stats(self) -> Dict[str, Any]: ...
    def close(self) -> None: ...
