# SPDX-License-Identifier: Apache-2.0
"""Make safetensors files for dl ckpt import, and check what dl ckpt export writes.

usage: exchange.py write FILE | types FILE | check FILE | peer FILE | damage FILE DIR COUNT SEED
       exchange.py newer CHECKPOINT OUTPUT | touch CHECKPOINT OUTPUT
"""
import json
import os
import random
import struct
import subprocess
import sys

TENSORS = {"model.w": ("F32", [2, 3], struct.pack("<6f", *range(6))), "empty": ("F32", [0, 4], b""),
           "step": ("I64", [], struct.pack("<q", -5)), "half": ("BF16", [3], struct.pack("<3H", 0x3f80, 0, 0xbf80)),
           "mask": ("BOOL", [5], bytes([1, 0, 1, 1, 0]))}


def build(tensors, metadata=None):
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())


def types():
    """Return a tensor of each type."""
    small, packed = [1, -2, 3, 0.5, -6, 7], {}
    for dtype, code in (("F64", "d"), ("F32", "f"), ("F16", "e")):
        packed[dtype] = struct.pack(f"<6{code}", *small)
    packed["C64"] = struct.pack("<12f", *small, *small)
    packed["BF16"] = b"".join(struct.pack("<f", x)[2:] for x in small)
    packed["BOOL"] = bytes([1, 0, 0, 1, 1, 0])
    for dtype in ("I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "F8_E4M3", "F8_E5M2"):
        size = 1 if dtype.startswith("F8") else int(dtype[1:]) // 8
        packed[dtype] = bytes((37 * i + size) & 255 for i in range(6 * size))
    return {f"group/{dtype}": (dtype, [3, 2], data) for dtype, data in packed.items()}


def parse(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    assert (8 + n) % 8 == 0, "the data are not aligned"
    return header, raw[8 + n:]


def check(path):
    """Check a file that was exported from an import of TENSORS."""
    header, data = parse(path)
    metadata = header.pop("__metadata__")
    assert metadata["slurmdl_step"] == "12", metadata
    assert set(header) == set(TENSORS), set(header)
    for name, (dtype, shape, want) in TENSORS.items():
        t = header[name]
        begin, end = t["data_offsets"]
        assert (t["dtype"], t["shape"], data[begin:end]) == (dtype, shape, want), name


def peer(path):
    """Check the file with the safetensors package, and let that package write another one."""
    from safetensors import safe_open
    with safe_open(path, framework="np") as f:
        assert set(f.keys()) == set(TENSORS)
        assert f.get_tensor("model.w").tolist() == [[0, 1, 2], [3, 4, 5]]
        assert f.get_tensor("mask").tolist() == [True, False, True, True, False]
    import numpy as np
    from safetensors.numpy import save_file
    save_file({"a": np.arange(7, dtype=np.float64), "b": np.ones((2, 2), np.float16)}, path + ".peer")


def damaged(raw, rng):
    """Return a damaged copy, which may by chance be valid."""
    n = struct.unpack("<Q", raw[:8])[0]
    text, data = raw[8:8 + n], raw[8 + n:]
    how = rng.randrange(7)
    if how == 0:
        return raw[:rng.randrange(len(raw))]
    if how == 1:
        return struct.pack("<Q", rng.choice([0, n - 1, n + 1, 1 << 40, (1 << 64) - 1, len(raw)])) + raw[8:]
    if how == 2:
        bad = bytearray(raw)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(8 + n)] = rng.randrange(256)
        return bytes(bad)
    header = json.loads(text)
    name = rng.choice(list(header))
    t = header[name]
    if how == 3:
        t["data_offsets"] = [rng.choice([-1, 0, 1, 5, 1 << 62, "0"]), rng.choice([0, 4, 24, 1 << 63, -4, None])]
    elif how == 4:
        t["shape"] = rng.choice([[-1], [1 << 62, 1 << 62], [3.5], "x", None, [1] * 9, [1 << 63]])
    elif how == 5:
        t["dtype"] = rng.choice(["F99", 7, None, "", "F64", "U8"])
    else:
        header[rng.choice(["", "/a", "a" * 300, "../../x", "model.w/x", "manifest", "."])] = header.pop(name)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def damage(path, top, count, seed):
    rng = random.Random(seed)
    with open(path, "rb") as f:
        raw = f.read()
    taken = 0
    for k in range(count):
        bad = f"{top}/bad.safetensors"
        out = f"{top}/out.h5"
        with open(bad, "wb") as f:
            f.write(damaged(raw, rng))
        p = subprocess.run(["dl", "ckpt", "import", bad, out], stderr=subprocess.PIPE, timeout=200)
        assert p.returncode in (0, 2, 5, 7), f"file {k}: status {p.returncode}: {p.stderr}"
        assert (p.returncode == 0) == os.path.exists(out), f"file {k}"
        if p.returncode == 0:
            taken += 1
            subprocess.run(["dl", "ckpt", "verify", out], stdout=subprocess.DEVNULL, check=True)
            os.unlink(out)
        else:
            assert p.stderr.startswith(b"dl: ") and p.stderr.count(b"\n") == 1, p.stderr
        assert os.listdir(top) == ["bad.safetensors"], os.listdir(top)
    assert taken < count / 2, "most of them were not damaged at all"


def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF


def newer(raw):
    """Return a checkpoint with the longer trailer of a future version."""
    trailer = b"SLURMDL2" + raw[-56:-4] + bytes(8)
    return raw[:-64] + trailer + struct.pack("<I", crc32c(trailer))


def touched(raw):
    """Return a checkpoint in which one number of model.w has changed."""
    five = struct.pack("<f", 5)
    assert raw.count(five) == 1
    return raw.replace(five, struct.pack("<f", 6))


def main():
    what, path = sys.argv[1:3]
    if what == "types":
        with open(path, "wb") as f:
            f.write(build(types()))
    elif what == "write":
        with open(path, "wb") as f:
            f.write(build(TENSORS, {"format": "pt"}))
    elif what == "check":
        check(path)
    elif what == "peer":
        peer(path)
    elif what in ("newer", "touch"):
        with open(path, "rb") as f, open(sys.argv[3], "wb") as out:
            out.write({"newer": newer, "touch": touched}[what](f.read()))
    else:
        damage(path, sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))


main()
