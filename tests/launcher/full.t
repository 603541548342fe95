#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A full file system: each command prints one error line that names the file, keeps existing files, and leaves no partial ones.
. "$srcdir/tests/lib.sh"
mounts=$(private_mounts) || skip_all "no name spaces"
cat >e.conf <<'END'
name = "e"; entrypoint = "mkdir $DL_ATTEMPT_DIR/ckpt && cp $W $DL_ATTEMPT_DIR/ckpt/00000001.h5 && echo loss=1 {x}"; metrics = { pattern = "loss={loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 3; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; };
END
echo 'name = "f"; steps = { a = { entrypoint = "echo hi"; }; };' >f.conf
/usr/bin/python3 - <<'END' || skip_all "no Python"
import json, struct
head = json.dumps({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
open("in.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + b"\1")
END
export W="$work/w.h5"
runs 0 "a checkpoint" dl ckpt import --step=1 in.safetensors w.h5
runs 0 "an experiment, while there is room" dl run --local e.conf
mkdir full old
for file in old.csv old.html old.npy old.safetensors old.h5; do echo precious >old/$file; done
cat >commands <<'END'
dl run --local e.conf
dl run --no-workers e.conf
dl job --local -- true
dl flow run --local f.conf
dl elastic --local --nodes=1 true
dl fork --local e-0001
dl continue --local --trials=5 e
dl label e good
dl archive e
dl exclude e node1
dl report e
dl report --output=old.html e
dl export --format=csv --output=old.csv e
dl export --format=h5 --output=old.h5 e
dl best --export=best e
dl ckpt import in.safetensors old.h5
dl ckpt export w.h5 old.safetensors
dl ckpt extract w.h5 w
dl ckpt extract --output=old.npy w.h5 w
dl model register e 1 m
dl plot --output=x.svg e
END
command -v gnuplot >/dev/null || sed -i '/^dl plot/d' commands
cat >try <<'END'
mount -t tmpfs -o size=4m none full && cp -r e.conf f.conf in.safetensors w.h5 e-0001 old/* full && cd full || exit 9
cat /dev/zero >fill 2>/dev/null
find . -mindepth 1 -exec stat -c '%n %s' {} + | sort >../before
exec 3<../commands
while read -r command <&3; do
    timeout 300 $command >../said 2>&1
    echo "$? $(wc -l <../said) $command: $(cat ../said)"
    find . -mindepth 1 -exec stat -c '%n %s' {} + | sort >../after
    cmp -s ../before ../after || diff ../before ../after | sed "s/^/changed by $command: /"
done
rm fill
for command in 'dl show e' 'dl continue --local --trials=5 e' 'dl ckpt verify w.h5' 'dl flow run --local f.conf'; do
    timeout 300 $command >../said 2>&1
    echo "$? then $command"
done
END
$mounts sh try >tried 2>&1
while read -r command; do
    like "$(grep -F " $command: " tried)" "^7 1 $command: dl: .*: cannot (write|make): No space left on device$" "$command: one line"
done <commands
is "$(grep '^changed' tried)" "" "nothing else has changed"
is "$(sed -n 's/^0 then //p' tried | wc -l)" 4 "everything continues once there is room"
done_testing
