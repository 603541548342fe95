# SPDX-License-Identifier: Apache-2.0
"""A parameter server: servers hold the parameters, workers push gradients and pull parameters.

    import slurmdl.ps

    with slurmdl.ps.init(mode="async") as group:          # srun --dl=ps --dl-roles=ps:2,worker:* python train.py
        if group.is_server:
            group.serve()
        else:
            w = group.table("w", initial=weights, rule="sgd", rate=0.1)
            e = group.table("embedding", row=64, rule="adagrad", rate=0.1, uniform=(-0.01, 0.01))
            while group.iteration < iterations:
                w.pull(weights)
                rows = e.pull_rows(ids)
                ...
                w.push(gradient)
                e.push_rows(ids, row_gradients)
                group.clock()

Arrays are of F32 and on the host: numpy's, torch's, or anything with a buffer; ids are of 64 bits.  Every wait is bounded:
slurmdl.Error names the server, or the worker that the servers wait for.  What a lost server or worker means is told in
slurmdl_ps.h.
"""

import math
from types import TracebackType
from typing import Any, Dict, List, Optional, Tuple, Type

from . import _slurmdl_ps
from .arrays import Memory, memory_of, number_of

MODES = {"sync": 1, "async": 2, "bounded": 3}
RULES = {"add": 0, "assign": 1, "sgd": 2, "adagrad": 3, "adam": 4}


def _host(x: Any, types: Tuple[str, ...], count: Optional[int]) -> Memory:
    """The memory of x, which has one of these types and so many elements."""
    if getattr(x, "is_cuda", False) or hasattr(x, "__cuda_array_interface__"):
        raise TypeError("the parameter server takes memory of the host: use x.cpu()")
    memory = memory_of(x)
    if memory.type not in types:
        raise TypeError(f"elements are {memory.type}, not {types[0]}")
    if count is not None and math.prod(memory.shape) != count:
        raise ValueError(f"there are {math.prod(memory.shape)} elements, not {count}")
    return memory


class Ticket:
    """A push or pull that is under way; the array is kept until wait(), which nobody has to call of a push."""

    def __init__(self, group: "Group", number: int, owner: Any) -> None:
        self._group = group
        self._number = group._newest = number
        self._owner = owner

    def wait(self) -> Any:
        """Wait for it; returns the array that was filled, or None of a push."""
        if self._number > self._group._settled:
            self._group._ps.wait(self._number)
        self._number = 0
        return self._owner[0]

    def __del__(self) -> None:
        if self._number > self._group._settled:
            self._group._dropped.append((self._number, self._owner))


class Table:
    """A dense or a sparse table; Group.table() makes it."""

    def __init__(self, group: "Group", number: int, n: int, row: int) -> None:
        self._group = group
        self._number = number
        self.n = n
        self.row = row

    def _empty(self, *shape: int) -> Any:
        import numpy

        return numpy.empty(shape, numpy.float32)

    def _ticket(self, number: int, later: bool, result: Any, *kept: Any) -> Any:
        if later:
            return Ticket(self._group, number, (result, *kept))
        return result

    def push(self, gradient: Any, later: bool = False) -> Any:
        """Push a gradient of all elements; 'later': return a Ticket, whose wait() is for the acknowledgement."""
        m = _host(gradient, ("f32",), self.n)
        return self._ticket(self._group._ps.push(self._number, m.where, self.n, later), later, None, gradient, m)

    def pull(self, out: Any = None, later: bool = False) -> Any:
        """Pull all elements into 'out', or a new array; 'later': return a Ticket."""
        out = self._empty(self.n) if out is None else out
        m = _host(out, ("f32",), self.n)
        return self._ticket(self._group._ps.pull(self._number, m.where, self.n, later), later, out, m)

    def push_pull(self, gradient: Any, out: Any = None) -> Any:
        """Push, end the iteration, and pull."""
        out = self._empty(self.n) if out is None else out
        m, to = _host(gradient, ("f32",), self.n), _host(out, ("f32",), self.n)
        self._group._ps.push_pull(self._number, m.where, to.where, self.n)
        return out

    def push_rows(self, ids: Any, gradients: Any, later: bool = False) -> Any:
        """Push gradients of rows; those of a row that is there twice are added first."""
        k = _host(ids, ("u64", "i64"), None)
        n = math.prod(k.shape)
        m = _host(gradients, ("f32",), n * self.row)
        ticket = self._group._ps.push_rows(self._number, k.where, n, m.where, self.row, later)
        return self._ticket(ticket, later, None, ids, gradients, k, m)

    def pull_rows(self, ids: Any, out: Any = None, later: bool = False) -> Any:
        """Pull rows, which are made when they are first used."""
        k = _host(ids, ("u64", "i64"), None)
        n = math.prod(k.shape)
        out = self._empty(n, self.row) if out is None else out
        m = _host(out, ("f32",), n * self.row)
        ticket = self._group._ps.pull_rows(self._number, k.where, n, m.where, self.row, later)
        return self._ticket(ticket, later, out, ids, k, m)

    def rate(self, rate: float) -> None:
        """Change the rate; one worker is enough."""
        self._group._ps.rate(self._number, rate)


class Group:
    """This process's part of the group: a server or a worker; init() makes it."""

    def __init__(self, **options: Any) -> None:
        self._ps = _slurmdl_ps.ParameterServer(**options)
        # tickets: the last one, and that up to which all was waited for
        self._newest = self._settled = 0
        # what is under way though its Ticket is gone: since the last clock(), and from before
        self._dropped: List[Tuple[int, Any]] = []
        self._older: List[Tuple[int, Any]] = []

    def __enter__(self) -> "Group":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if kind is None:
            self.close()

    @property
    def is_server(self) -> bool:
        """Whether it serves, or is a spare server."""
        return bool(self._ps.facts()[0])

    @property
    def index(self) -> int:
        """Its number among those of its role."""
        return self._ps.facts()[1]

    @property
    def servers(self) -> int:
        """How many servers there are."""
        return self._ps.facts()[2]

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return self._ps.facts()[3]

    @property
    def iteration(self) -> int:
        """Iterations that this worker has ended, with those before it replaced another one or a save was restored."""
        return self._ps.facts()[4]

    @property
    def saved(self) -> int:
        """The newest iteration that all servers have saved; 0: none."""
        return self._ps.facts()[5]

    def serve(self) -> None:
        """Serve until all workers have left."""
        self._ps.serve()

    def stop(self) -> None:
        """From another thread: serve() is to raise slurmdl.Error."""
        self._ps.stop()

    def table(
        self,
        name: str,
        initial: Any = None,
        *,
        n: int = 0,
        row: int = 0,
        rule: str = "add",
        rate: float = 0.0,
        momentum: float = 0.0,
        decay: float = 0.0,
        betas: Tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        uniform: Tuple[float, float] = (0.0, 0.0),
        seed: int = 0,
    ) -> Table:
        """Declare a table: dense with 'initial' (worker 0's count) or 'n' zeros, sparse with 'row' elements a row."""
        where = None
        if initial is not None:
            m = _host(initial, ("f32",), n or None)
            n, where = math.prod(m.shape), m.where
        number = self._ps.table(
            name,
            n,
            row,
            number_of(RULES, rule, "rule"),
            rate,
            momentum,
            decay,
            betas[0],
            betas[1],
            epsilon,
            uniform[0],
            uniform[1],
            seed,
            where,
        )
        return Table(self, number, n, row)

    def clock(self) -> None:
        """End this worker's iteration."""
        self._ps.clock()
        for number, _ in self._older:
            if number > self._settled:
                self._ps.wait(number)
        self._older, self._dropped = self._dropped, []

    def wait(self) -> None:
        """Wait until all that was pushed is acknowledged, and all that is pulled is there."""
        newest = self._newest
        self._ps.wait(0)
        self._settled = newest

    def save(self) -> None:
        """Ask all servers to save at the end of one of the next iterations."""
        self._ps.save()

    def stats(self) -> Dict[str, Any]:
        """What this process has done: pushes, pulls, bytes_out, bytes_in, repeated, lost, saves, log_bytes, waited, ahead."""
        return self._ps.stats()

    def close(self) -> None:
        """Leave; a worker waits until all is acknowledged."""
        self._ps.close()


def init(
    role: Optional[str] = None,
    index: int = 0,
    servers: int = 0,
    workers: int = 0,
    dir: Optional[str] = None,
    address: Optional[str] = None,
    mode: Optional[str] = None,
    staleness: int = 0,
    save_every: int = 0,
    log_bytes: int = 0,
    timeout: float = 0.0,
    grace: float = 0.0,
) -> Group:
    """Take part in a group; what is not given is as the environment says (slurmdl_ps.h)."""
    return Group(
        role=role,
        index=index,
        servers=servers,
        workers=workers,
        dir=dir,
        address=address,
        mode=number_of(MODES, mode, "mode") if mode else 0,
        staleness=staleness,
        save_every=save_every,
        log_bytes=log_bytes,
        timeout=timeout,
        grace=grace,
    )
