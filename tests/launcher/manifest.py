# SPDX-License-Identifier: Apache-2.0
"""Compare each dataset of checkpoints, as h5py reads it, with the manifest.

usage: manifest.py FILE...

Compare name, shape, type and offset, and the checksum of each slab.
"""
import struct
import sys

import h5py
import numpy as np

CODES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", None, "bool", "complex64", "complex128",
         "int16", "uint16", "uint8", "uint8")
SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 8, 16, 2, 2, 1, 1)


def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = crc_table()


def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = (c >> 8) ^ TABLE[(c ^ byte) & 255]
    return c ^ 0xFFFFFFFF


def datasets(f):
    found = {}
    f.visititems(lambda name, o: found.__setitem__(name, o) if isinstance(o, h5py.Dataset) else None)
    return found


def raw_of(path, row, size):
    """Return the elements as stored in the file, each as 'size' bytes."""
    dims = tuple(int(n) for n in row["dims"][:row["ndims"]])
    with open(path, "rb") as f:
        f.seek(int(row["offset"]))
        data = f.read(int(row["bytes"]))
    assert len(data) == row["bytes"]
    return np.frombuffer(data, f"V{size}").reshape(dims)


def check_type(d, row, raw):
    """Check that h5py reads the same bytes."""
    kind = CODES[row["type"]]
    if kind is None:  # bfloat16 has the upper half of a float's bits
        wide = raw.view("<u2").astype("u4") << 16
        assert (d[()].astype("f4").view("u4") == wide).all(), "bf16"
        return
    assert d.dtype == np.dtype(kind), f"{d.dtype}, not {kind}"
    assert d[()].tobytes() == raw.tobytes(), "other bytes"


def check_sums(row, raw, shards):
    if row["shards"] == 0:
        assert crc32c(raw.tobytes()) == row["crc32c"], "the checksum is wrong"
        return
    seen = np.zeros(raw.shape, "u1")
    for s in shards[row["crc32c"]:row["crc32c"] + row["shards"]]:
        box = tuple(slice(int(a), int(a + n)) for a, n in zip(s["offset"][:raw.ndim], s["dims"][:raw.ndim]))
        seen[box] += 1
        assert crc32c(raw[box].tobytes()) == s["crc32c"], f"the checksum of slab {box} is wrong"
    assert (seen == 1).all(), "the slabs do not cover it once"


def check(path):
    with h5py.File(path, "r") as f:
        found = datasets(f)
        rows = f["manifest"][:]
        shards = f["shards"][:] if "shards" in f else []
        names = [r["name"].decode() for r in rows]
        assert sorted(names) == sorted(set(found) - {"manifest", "shards"}), f"{names}, {sorted(found)}"
        for i, (name, row) in enumerate(zip(names, rows)):
            d, size = found[name], SIZES[row["type"]]
            try:
                assert d.shape == tuple(row["dims"][:row["ndims"]]), f"shape {d.shape}"
                assert (row["dims"][row["ndims"]:] == 0).all()
                assert d.size * size == row["bytes"], f"{row['bytes']} bytes"
                assert not row["bytes"] or d.id.get_offset() == row["offset"], f"at {d.id.get_offset()}"
                raw = raw_of(path, row, size)
                check_type(d, row, raw)
                check_sums(row, raw, shards)
                assert all(s["tensor"] == i for s in shards[row["crc32c"]:row["crc32c"] + row["shards"]] if row["shards"])
            except AssertionError as e:
                raise AssertionError(f"{path}: {name}: {e}") from e
        step = f.attrs["step"]
    with open(path, "rb") as f:
        end = f.read()[-64:]
    assert end[:8] == b"SLURMDL1" and struct.unpack_from("<q", end, 8)[0] == step
    return len(names), len(shards)


for one in sys.argv[1:]:
    print("%s: %d tensors, %d slabs" % (one.split("/")[-1], *check(one)))
