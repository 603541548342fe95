# SPDX-License-Identifier: Apache-2.0
"""Horovod's interface for PyTorch: to run a script, change its import.

    import slurmdl.hvd as hvd          # was: import horovod.torch as hvd

Differences: `srun` starts the ranks.  Process sets can always be added, by all ranks at the same place.  Horovod's
variables for fusion, cycles, the timeline and stalls apply if ours are not set (_VARIABLES in world.py).  After join()
of some ranks, all-gathers and broadcasts of the others continue, which Horovod rejects. gloo_built() is true: our own
communicator takes the place of Gloo; mpi_built() and nccl_built() say what is in use. broadcast_optimizer_state()
creates no gradients.  An all-to-all runs while it is waited for, which all ranks must do in the same order.
SyncBatchNorm works on the host, too.  Objects of your own classes are broadcast after hvd.init(trust=True).  Adasum
gathers the tensors of all ranks: use it for few ranks.

hvd.elastic is slurmdl.elastic, for `dl elastic python3 script.py`.  Such a script also runs by hand, alone or with
RANK, WORLD_SIZE and MASTER_ADDR, until a rank is lost.  After the function of hvd.elastic.run() has ended, rank() and
size() stay the same, but there are no collectives.
"""

from . import elastic
from .._slurmdl import Error as HorovodInternalError
from .collectives import Adasum, Average, Max, Min, Product, ReduceOp, Sum
from .collectives import allgather, allgather_async, grouped_allgather, grouped_allgather_async
from .collectives import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .collectives import allreduce, allreduce_, allreduce_async, allreduce_async_, sparse_allreduce_async
from .collectives import alltoall, alltoall_async, barrier, join, poll, synchronize
from .collectives import broadcast, broadcast_, broadcast_async, broadcast_async_
from .collectives import grouped_allreduce, grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_
from .collectives import grouped_reducescatter, grouped_reducescatter_async, reducescatter, reducescatter_async
from .compression import Compression, Compressor
from .norm import SyncBatchNorm
from .optimizer import DistributedOptimizer
from .world import ProcessSet, add_process_set, global_process_set, remove_process_set
from .world import ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built, mpi_enabled
from .world import cross_rank, cross_size, is_homogeneous, local_rank, local_size, rank, size
from .world import init, is_initialized, shutdown, start_timeline, stop_timeline
from .world import mpi_threads_supported, nccl_built, rocm_built

__all__ = [
    "Adasum", "Average", "Compression", "Compressor", "DistributedOptimizer", "HorovodInternalError", "Max", "Min",
    "ProcessSet", "Product", "ReduceOp", "Sum", "SyncBatchNorm", "add_process_set", "allgather", "allgather_async",
    "allgather_object", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async",
    "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "broadcast_object",
    "broadcast_optimizer_state", "broadcast_parameters", "ccl_built", "cross_rank", "cross_size", "cuda_built",
    "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather",
    "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async", "init", "is_homogeneous",
    "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported",
    "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async", "remove_process_set", "rocm_built",
    "shutdown", "size", "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize",
]  # fmt: skip
