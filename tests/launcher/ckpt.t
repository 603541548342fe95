#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl ckpt: ls, verify, extract, diff, import and export of safetensors files.
. "$srcdir/tests/lib.sh"
python=/usr/bin/python3
"$python" -c 'import json' 2>/dev/null || skip_all "no Python"
st="$srcdir/tests/launcher/exchange.py"

# ---- import and export
"$python" "$st" write in.safetensors
dl ckpt import --step=12 in.safetensors a.h5
is $? 0 "a safetensors file is imported"
dl ckpt verify a.h5 >out
is $? 0 "the checkpoint verifies"
is "$(cat out)" "a.h5: step 12, all checksums match" "verify says so"
dl ckpt export a.h5 out.safetensors && "$python" "$st" check out.safetensors
is $? 0 "the export equals the import"

dl ckpt export --only=model. a.h5 part.safetensors && dl ckpt import part.safetensors part.h5
is "$? $(dl ckpt ls part.h5 | sed -n '1p;3,$s/ .*//p' | xargs)" "0 step 12: 1 tensors, 24 bytes w" "export --only: tensors below a name, without it"
dl ckpt export --only=modle. a.h5 none.safetensors 2>err
is "$? $(cat err) $(ls none* 2>/dev/null)" "3 dl: no tensor name starts with 'modle.' " "no tensor has that name: status 3"
sed 's/F32/X32/' in.safetensors >odd.safetensors
dl ckpt import odd.safetensors odd.h5 2>err
is "$(cat err)" "dl: odd.safetensors: 'model.w' cannot be stored in a checkpoint: its dtype 'X32'" "an unsupported dtype is named"
mkfifo pipe
dl ckpt export a.h5 pipe 2>err
is "$? $(cat err)" "2 dl: pipe: is not a regular file, and is not replaced" "a pipe is not replaced by a file"
dl ckpt import in.safetensors pipe 2>err
is "$? $(cat err)" "2 dl: pipe: is not a regular file, and is not replaced" "nor by a checkpoint"
holds "it still exists" [ -p pipe ]
cp out.safetensors first.safetensors
ln -s first.safetensors latest
dl ckpt export a.h5 latest
is "$? $(find . -name latest -type f)" "0 ./latest" "a link is replaced"
holds "its target is kept" cmp -s out.safetensors first.safetensors

# ---- ls
dl ckpt ls a.h5 >out
like "$(cat out)" 'model.w +f32 +\[2, 3\] +24 +1' "ls has one row per tensor"
like "$(head -1 out)" '^step 12: 5 tensors, 43 bytes$' "ls prints the totals"
is "$(dl ckpt ls --json a.h5 | "$python" -c 'import json, sys; d = json.load(sys.stdin); print(d["step"], sorted(t["name"] for t in d["tensors"])[2], d["tensors"][0]["shards"])')" \
    "12 mask 1" "ls --json is JSON"
mkdir -p run/a.1/ckpt && cp a.h5 run/a.1/ckpt/00000012.h5
is "$(dl ckpt ls run | head -1)" "step 12: 5 tensors, 43 bytes" "a trial's folder means its newest checkpoint"
is "$(dl ckpt ls run/a.1 | head -1)" "step 12: 5 tensors, 43 bytes" "so does an attempt's"

cp a.h5 run/a.1/ckpt/00000011.h5
mkdir -p run/a.10/ckpt && cp a.h5 run/a.10/ckpt/00000012.h5
is "$(dl ckpt verify run | cut -d: -f1 | xargs)" "run/a.1/ckpt/00000011.h5 run/a.1/ckpt/00000012.h5 run/a.10/ckpt/00000012.h5" \
    "verify of a trial's folder verifies all of its checkpoints"
is "$(dl ckpt verify --json run/a.10 | "$python" -c 'import json, sys; print([(d["path"], d["whole"]) for d in json.load(sys.stdin)])')" \
    "[('run/a.10/ckpt/00000012.h5', True)]" "of an attempt's folder, its own"
printf 'x' | dd of=run/a.10/ckpt/00000012.h5 bs=1 seek=3000 conv=notrunc 2>/dev/null
dl ckpt verify run >out 2>err
is "$? $(wc -l <out) $(cat err)" "5 2 dl: run/a.10/ckpt/00000012.h5: is not a checkpoint, or is damaged" "a damaged one is named"
rm -r run/a.10 run/a.1/ckpt/00000011.h5
mkdir -p empty other/trials
dl ckpt verify empty 2>err
is "$? $(cat err)" "3 dl: empty: there is no checkpoint in this folder" "a folder without any: status 3"
dl ckpt ls other 2>err
is "$? $(cat err)" "3 dl: other: is an experiment; name the folder of a trial: other/trials/NNNN" "an experiment's folder"

is "$(dl --complete ckpt | grep -v '^--' | xargs) $(dl --complete ckpt ls | grep -c verify)" "ls verify extract diff export import 0" "a shell completes the words"

# ---- extract
is "$(dl ckpt extract --format=raw --output=w.raw a.h5 model.w)" "w.raw" "extract prints what it wrote"
is "$("$python" -c 'import struct; print(struct.unpack("<6f", open("w.raw", "rb").read()))')" "(0.0, 1.0, 2.0, 3.0, 4.0, 5.0)" \
    "extract writes the bytes"
dl ckpt extract --output=w.npy a.h5 model.w >out
if "$python" -c 'import numpy' 2>/dev/null; then
    is "$("$python" -c 'import numpy; w = numpy.load("w.npy"); print(w.dtype, w.shape, w.sum())')" "float32 (2, 3) 15.0" "numpy reads the file"
    dl ckpt extract --output=h.npy a.h5 half >out 2>err
    like "$(cat err)" "numpy has no bf16; these are its bits" "a type that numpy lacks is reported"
    is "$("$python" -c 'import numpy; print(numpy.load("h.npy").tolist())')" "[16256, 0, 49024]" "and is kept"
else
    skip "extracted .npy" "no numpy"
fi
dl ckpt extract a.h5 nothing 2>err
is $? 3 "a tensor that does not exist: status 3"
dl ckpt extract --format=jpg a.h5 step 2>err
is $? 2 "an unknown format: status 2"

# ---- diff
dl ckpt diff a.h5 a.h5 >out
is "$? $(cat out)" "0 " "no difference: status 0"
sed 's/F32/I32/g' in.safetensors >type.safetensors
dl ckpt import type.safetensors type.h5
dl ckpt diff a.h5 type.h5 >out
is "$? $(sort out | tr '\n' ';')" "1 empty: different type;model.w: different type;" "another type"
"$python" - <<'END'
raw = bytearray(open("in.safetensors", "rb").read())
i = raw.index(b"\x00\x00\xa0\x40")
raw[i:i + 4] = b"\x00\x00\xb0\x40"
open("value.safetensors", "wb").write(raw.replace(b'"half"', b'"hulf"'))
END
dl ckpt import value.safetensors value.h5
dl ckpt diff a.h5 value.h5 >out
is "$(sort out | tr '\n' ';')" "half: only in the first;hulf: only in the second;model.w: values differ by at most 0.5;" "values and names"
is "$(dl ckpt diff --json a.h5 value.h5 | "$python" -c 'import json, sys; print(sorted(d.get("largest", -1) for d in json.load(sys.stdin)))')" \
    "[-1, -1, 0.5]" "diff --json is JSON"

"$python" - <<'END'
import json, struct
first = {"I8": ("b", -5), "U8": ("B", 200), "I16": ("h", -300), "U16": ("H", 60000), "I32": ("i", -70000), "U32": ("I", 4000000000),
         "I64": ("q", -2**40), "U64": ("Q", 2**40), "F32": ("f", 1.5), "F64": ("d", 2.25), "F16": ("H", 0x3e00), "BF16": ("H", 0x3fc0),
         "F8_E4M3": ("B", 0x3c), "F8_E5M2": ("B", 0x3e), "BOOL": ("B", 0)}
for name, more in ("from", 0), ("to", 1): # bigger by 1; the 8- and 16-bit float types hold bits, so theirs are bigger by 1
    head, data = {}, b""
    for t, (code, value) in first.items():
        raw = struct.pack("<" + code, value + more)
        head[t] = {"dtype": t, "shape": [1], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
END
for f in from to; do dl ckpt import --step=1 $f.safetensors $f.h5; done
is "$(dl ckpt diff from.h5 to.h5 | sed 's/: values differ by at most /=/' | sort | tr '\n' ' ')" \
    "BF16=0.0078125 BOOL=1 F16=0.000976562 F32=1 F64=1 F8_E4M3=0.125 F8_E5M2=0.25 I16=1 I32=1 I64=1 I8=1 U16=1 U32=1 U64=1 U8=1 " "a difference in each type"

# ---- damage
cp a.h5 bad.h5
printf 'x' | dd of=bad.h5 bs=1 seek=3000 conv=notrunc 2>/dev/null
dl ckpt verify a.h5 bad.h5 >out 2>err
is "$? $(cat err)" "5 dl: bad.h5: is not a checkpoint, or is damaged" "a damaged file: status 5"
"$python" "$st" newer a.h5 newer.h5
dl ckpt verify newer.h5 >out 2>err
is "$? $(cat err)" "7 dl: newer.h5: was written by a later version of slurm-dl, and cannot be read by this one" "a later version is not damage"
"$python" "$st" touch a.h5 touched.h5
dl ckpt verify touched.h5 >out 2>err
is "$? $(cat err)" "5 dl: touched.h5: 'model.w' is damaged" "a damaged tensor is named"
dl ckpt verify none.h5 2>err
is $? 3 "a file that does not exist: status 3"
dl ckpt ls in.safetensors 2>err
is $? 5 "a file that is not a checkpoint: status 5"
dl ckpt nothing a.h5 2>err
is $? 2 "an unknown word: status 2"
dl ckpt diff a.h5 2>err
is "$? $(cat err)" "2 dl: usage: dl ckpt diff FILE FILE" "a missing argument: status 2"
mkdir fuzz
seed=${DL_TEST_SEED:-$(date +%s)}
timeout 3000 "$python" "$st" damage in.safetensors fuzz "${DL_TEST_FILES:-$(often 200 5000)}" "$seed" >out 2>&1
ok $? "damaged safetensors files are rejected in one line (seed $seed)"
sed 's/^/# /' out

# ---- other readers: h5py and the safetensors package
if "$python" -c 'import h5py, numpy' 2>/dev/null; then
    is "$("$python" -c '
import h5py
with h5py.File("a.h5") as f:
    print(f["model.w"][:].tolist(), f["mask"].dtype, f["half"][:].tolist(), f["step"][()], f["manifest"]["name"][0].decode())')" \
        "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] bool [1.0, 0.0, -1.0] -5 $(dl ckpt ls a.h5 | sed -n 3p | cut -d' ' -f1)" "h5py reads it"
else
    skip "h5py" "no python3-h5py"
fi
"$python" "$st" types types.safetensors && dl ckpt import --step=3 types.safetensors types.h5 &&
    "$builddir/tests/runtime/writer" ranks three 3 sync 2 >/dev/null
is $? 0 "files of all types, and of three ranks"
for p in ${DL_TEST_PYTHONS:-/usr/bin/python3}; do
    version=$("$p" -c 'import h5py, numpy; print(h5py.version.hdf5_version)' 2>/dev/null) || continue
    runs 0 "each dataset is as the manifest says, by h5py with HDF5 $version" "$p" "$srcdir/tests/launcher/manifest.py" a.h5 types.h5 three/a.1/ckpt/*.h5
    sed 's/^/# /' out
done
for p in ${DL_TEST_PYTHONS:-/usr/bin/python3}; do
    "$p" -c 'import safetensors.numpy' 2>/dev/null || continue
    "$p" "$st" peer out.safetensors && dl ckpt import out.safetensors.peer peer.h5 && dl ckpt verify peer.h5 >out
    ok $? "the safetensors package of $p reads ours, and we read its"
done
done_testing
