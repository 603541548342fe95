# SPDX-License-Identifier: Apache-2.0
"""Save and restore device memory with libslurmdl's C API, without PyTorch."""

import ctypes
import os
import sys
import time

from gpu import STAND_INS, figure, folder, median, need, run, same, say

SHM = "/dev/shm"
ROUNDS = 1 if STAND_INS else 2


class Cuda:
    def __init__(self):
        for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
            try:
                self.lib = ctypes.CDLL("libcudart.so" if STAND_INS else name)
                break
            except OSError as error:
                say(error)
        self.lib.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.lib.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.lib.cudaHostAlloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]

    def check(self, status, what):
        assert status == 0, f"{what}: CUDA error {status}"

    def malloc(self, n):
        p = ctypes.c_void_p()
        self.check(self.lib.cudaMalloc(ctypes.byref(p), n), "cudaMalloc")
        return p.value

    def pinned(self, n):
        p = ctypes.c_void_p()
        self.check(self.lib.cudaHostAlloc(ctypes.byref(p), n, 0), "cudaHostAlloc")
        return p.value

    def copy(self, to, source, n, kind):
        self.check(self.lib.cudaMemcpy(to, source, n, kind), f"cudaMemcpy of kind {kind}")


def main():
    (numpy,) = need("numpy")
    to_device, to_host, mib = 1, 2, 8 if STAND_INS else 1024
    n = mib << 20
    lib = ctypes.CDLL(os.path.join(os.environ["builddir"], "lib", "libslurmdl.so.0"))
    lib.slurmdl_open.restype = ctypes.c_void_p
    lib.slurmdl_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    lib.slurmdl_protect.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p,
                                    ctypes.c_void_p]
    for f in (lib.slurmdl_save, lib.slurmdl_save_async):
        f.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p]
    lib.slurmdl_save_wait.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.slurmdl_restore.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
    lib.slurmdl_close.argtypes = [ctypes.c_void_p]
    cuda, error = Cuda(), ctypes.create_string_buffer(256)
    dims = (ctypes.c_uint64 * 1)(n)
    data = numpy.random.default_rng(5).integers(0, 256, n, dtype="u1")
    p, pinned = cuda.malloc(n), cuda.pinned(n)
    cuda.copy(p, data.ctypes.data, n, to_device)

    def must(condition, what):
        assert condition, f"{what}: {error.value.decode(errors='replace')}"

    def opened_run(path):
        handle = lib.slurmdl_open(path.encode(), error)
        must(handle, "slurmdl_open")
        must(lib.slurmdl_protect(handle, b"w", 1, 1, dims, p) == 0, "slurmdl_protect")
        return handle

    rates = {}
    with folder(SHM) as top:
        handle = opened_run(os.path.join(top, "run"))
        must(lib.slurmdl_save_async(handle, 1, error) == 0, "slurmdl_save_async")
        must(lib.slurmdl_save_wait(handle, error) == 0, "slurmdl_save_wait")
        for i in range(2, 2 + ROUNDS):
            t = time.monotonic()
            cuda.copy(pinned, p, n, to_host)
            rates.setdefault("copy", []).append(time.monotonic() - t)
            t = time.monotonic()
            must(lib.slurmdl_save(handle, 2 * i, error) == 0, "slurmdl_save")
            rates.setdefault("sync", []).append(time.monotonic() - t)
            must(lib.slurmdl_save_wait(handle, error) == 0, "slurmdl_save_wait")
            t = time.monotonic()
            must(lib.slurmdl_save_async(handle, 2 * i + 1, error) == 0, "slurmdl_save_async")
            rates.setdefault("stall", []).append(time.monotonic() - t)
            must(lib.slurmdl_save_wait(handle, error) == 0, "slurmdl_save_wait")
        lib.slurmdl_close(handle)
        zeros = numpy.zeros(n, "u1")  # keep a reference: the address alone does not
        cuda.copy(p, zeros.ctypes.data, n, to_device)
        handle, at = opened_run(os.path.join(top, "run")), ctypes.c_int64()
        t = time.monotonic()
        must(lib.slurmdl_restore(handle, ctypes.byref(at), error) == 1, "slurmdl_restore")
        rates["restore"] = [time.monotonic() - t]
        lib.slurmdl_close(handle)
    back = numpy.empty(n, "u1")
    cuda.copy(back.ctypes.data, p, n, to_host)
    wrong = numpy.flatnonzero(back != data)
    assert not len(wrong), f"{len(wrong)} of {n} bytes differ, from {wrong[0]} on"
    m = {k: median(v) for k, v in rates.items()}
    figure("checkpoint.c.sync", n / 1e9 / m["sync"], "GB/s")
    figure("checkpoint.c.async.stall", m["stall"] / (n / 2**30), "s/GiB", "cudaMemcpy", m["copy"] / (n / 2**30))
    figure("checkpoint.c.restore", n / 1e9 / m["restore"], "GB/s")


def in_own_process():
    """Run main() in its own process, which has no PyTorch."""
    status, out = run([sys.executable, __file__], 100)
    for line in out.splitlines():
        if line.startswith("# figure "):
            print(line, flush=True)
        else:
            say(line)
    same(status, 0, "device memory by the C interface: saved, wiped and restored, every byte")


if __name__ == "__main__":
    main()
