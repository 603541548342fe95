# SPDX-License-Identifier: Apache-2.0
"""Buffers that are too small, and calls from several threads: these raise exceptions and never crash."""

import os
import threading

from check import ok, raises, same

import slurmdl
import slurmdl.comm
from slurmdl import _slurmdl

# ---- several threads write a checkpoint
BYTES = 32 << 20
data = bytes(BYTES)
for turn in range(5):
    path = f"w{turn}.h5"
    writer = _slurmdl.Writer(path, 1)
    writer.add("first", "u8", (4,), b"four", False)
    added, begun = ["first"], threading.Event()

    def add():
        for i in range(8):
            try:
                begun.set()
                writer.add(f"t{i}", "u8", (BYTES,), data, False)
                added.append(f"t{i}")
            except ValueError as error:
                assert str(error) == "the file is closed", error
                break

    thread = threading.Thread(target=add)
    thread.start()
    begun.wait()
    writer.commit()
    thread.join()
    have = [row[0] for row in _slurmdl.Checkpoint(path).tensors()]
    os.unlink(path)
    if sorted(have) != sorted(added):
        break
same(sorted(have), sorted(added), "Writer: commit() in another thread writes all that add() accepted")
with raises(ValueError, "the file is closed", "Writer: commit() rejects a second call"):
    writer.commit()
writer = _slurmdl.Writer("forked.h5", 1)
writer.add("x", "u8", (4,), b"four", False)
child = os.fork()
if child == 0:
    del writer
    os._exit(0)
os.waitpid(child, 0)
writer.commit()
ok(os.path.exists("forked.h5"), "Writer: a forked child that exits leaves the file alone")

# ---- named tensors
world = slurmdl.comm.init(rank=0, size=1)
SMALLER = "the memory is smaller than its shape requires"


def submit(what, n, row, given, out, name="t"):
    return world.submit_memory(name, what, "f32", 0, n, row, (), 0, given, out, 1.0, 1.0, 0, None, 0, None, 0)


room, tight = bytearray(4096), bytearray(16)
with raises(ValueError, SMALLER, "submit(): 'out' of an all-reduce is too small"):
    submit(0, 1024, 0, room, tight)
with raises(ValueError, SMALLER, "submit(): 'out' of a reduce-scatter is too small"):
    submit(3, 1024, 2, room, tight)
with raises(ValueError, SMALLER, "submit(): an all-reduce cannot have rows of zero width"):
    submit(0, 1 << 40, -1, tight, tight)
with raises(ValueError, SMALLER, "submit(): negative number of elements"):
    submit(0, -1, 0, room, room)
with raises(ValueError, SMALLER, "allreduce_memory(): address 0"):
    world.allreduce_memory("f32", 4, 0, room, 0)
with raises(ValueError, SMALLER, "broadcast_memory(): negative number of bytes"):
    world.broadcast_memory(1 << 20, -2, 0)
ticket = submit(0, 1024, 0, room, room)
with raises(slurmdl.Error, "own memory", "take() rejects a ticket with 'out'"):
    world.take(ticket)
with raises(BufferError, "", "take() leaves the memory of that ticket locked"):
    room.append(0)
world.wait(ticket)
room.append(0)
ticket = submit(1, 3, -1, tight, None)
world.wait(0)
same(world.take(ticket), (b"", (3,)), "take() returns rows of zero width after wait(0)")
world.close()
