#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run sweeps under random faults. DL_TEST_SEED repeats a run with the seed that it printed; a soak takes longer.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/faults/benches.sh"

# ---- start the benches in the background
shim=$builddir/tests/faults/.libs/shim.so
calls=
power=
if nm -D "$builddir/launcher/dl" | grep -q __asan_; then
    calls="the sanitizer wraps these calls itself"
elif [ -n "$DL_TEST_SOAK" ]; then
    begin calls syscalls.py "$shim"
else
    begin calls syscalls.py "$shim" --cases=60 --seed="$seed"
fi
if [ -n "$calls" ]; then
    power=$calls
elif ! $python -c 'import h5py' 2>/dev/null; then
    power="no Python with h5py (python3-h5py)"
else
    begin power power.py "$builddir/tests/fakes/.libs/trace.so" --cuts="$(often 12 2000)" --seed="$seed"
fi
# each read of a trial's output fails once
[ -n "$calls" ] || begin reads syscalls.py "$shim" --only='^(EDQUOT|EIO|ESTALE|EINTR|EACCES) p?read.*/a\.[0-9]+/log$'
# shellcheck disable=SC2034
[ "$(id -u)" -eq 0 ] || private=$(private_mounts) # kill.py mounts a small disk, to fill it up
begin kills kill.py --kills="$(often 40 1000)" --trials="$(often 60 500)" --seed="$seed"
# shellcheck disable=SC2034
private=
if [ -n "$DL_TEST_SOAK" ] && slurm_is_here; then
    begin slurm kill.py --kills=1000 --trials=500 --cluster="$minicluster" --seed="$seed"
fi

# ---- check.py detects each kind of damage
cat >"$work/judge.conf" <<'END'
name = "judge";
entrypoint = "echo loss=$DL_TRIAL";
searcher = { name = "random"; metric = "loss"; max_trials = 3; };
metrics = { pattern = "loss={loss}"; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; };
END
(cd "$work" && timeout 300 dl run --local judge.conf >out 2>&1)
judge () { # judge WHAT COMMAND PATTERN: damage a copy with COMMAND, and check that check.py reports PATTERN
    rm -rf "$work/copy"
    cp -a "$work/judge-0001" "$work/copy"
    (cd "$work/copy" && eval "$2")
    $python "$faults/check.py" --results --trials=3 "$work/copy" >"$work/out" 2>&1
    is $? 1 "the judge sees $1"
    like "$(cat "$work/out")" "^  .*$3" "and says so"
}
# shellcheck disable=SC2317
rewrite () { # rewrite SED: edit the log, and correct its checksums
    $python - "$1" "$faults" <<'END'
import glob, subprocess, sys
sys.path.insert(0, sys.argv[2])
from replay import xxh64
for path in glob.glob("log/*/*"):
    text = open(path, "rb").read()
    body = b"".join(text.splitlines(True)[:-1])
    new = subprocess.run(["sed", sys.argv[1]], input=body, stdout=subprocess.PIPE, check=True).stdout
    open(path, "wb").write(new + b'{"xxh64": "%016x"}\n' % xxh64(new))
END
}
$python "$faults/check.py" --results --trials=3 "$work/judge-0001" >"$work/out" 2>&1
is $? 0 "the judge finds a good experiment sound"
last=$(cd "$work/judge-0001" && find log -name '0*[0-9]' -type f | sort | tail -1)
judge "a torn entry" "truncate -s -3 $last" "$last: its last line is cut"
judge "a changed byte" "sed -i 's/completed/completeD/' $last" "$last: its checksum is wrong"
judge "a sweep without its end" "rm $last" 'has not ended: running'
judge "a gap" "rm log/000000/00000002" 'log: the numbers have gaps'
judge "an attempt without its folder" "rm -r trials/0002/a.1" 'trials/0002/a.1: no such folder'
judge "hparams of another trial" "cp trials/0001/a.1/hparams.json trials/0002/a.1" \
    'trials/0002/a.1/hparams.json: .*, not'
if $python -c 'import h5py' 2>/dev/null; then
    judge "another metric than the trainer's" 'rewrite "s/\"metric\":2.0/\"metric\":2.5/"' \
        'loss is 2.0, not 2.5'
    judge "results without the last event" '$python -c "
import h5py
with h5py.File(\"results.h5\", \"r+\") as f:
    f.attrs[\"entries\"] -= 1"' 'results.h5: [0-9]* entries and completed, not'
    judge "another result in results.h5" '$python -c "
import h5py
with h5py.File(\"results.h5\", \"r+\") as f:
    f[\"trials/metric\"][1] = 7"' 'results.h5: trial 2 has 7.0 at 1, not'
    judge "a torn file of metrics" "truncate -s 100 trials/0003/a.1/metrics.h5" 'trials/0003/a.1/metrics.h5: '
fi
judge "an attempt of another worker" 'rewrite "/\"op\":\"result\"/s/\"by\":\"/&x/"' \
    'result of attempt 1 by x.*, but .* had it'
judge "an attempt of nobody" 'rewrite "/\"op\":\"begin\"/s/\"owner\":\"/&0/"; rm -f trials/*/claim.*' \
    'which no worker has claimed'
judge "a second result" 'rewrite "/\"op\":\"result\",.*\"trial\":1/{p;s/\"attempt\":1/\"attempt\":2/}"' \
    'which has not begun'
judge "a segment after the end" 'rewrite "/\"op\":\"end\"/{h;s/.*/{\"op\":\"begin\",\"trial\":1,\"length\":2}/;H;x}"' \
    'begins in a sweep that is completed'
judge "an entry that leads nowhere" "rm $last; ln -s .none $last" "$last: leads nowhere"

# ---- results of the benches
if [ -n "$calls" ]; then
    skip "a worker crashes at one of its calls, or the call fails" "$calls"
else
    finish calls "a worker crashes at, or is refused, one of its calls"
    finish reads "what a trial printed is refused once"
fi
if [ -n "$power" ]; then
    skip "power failures" "$power"
else
    finish power "losses of power"
fi
finish kills "$(often 40 1000) kills"
[ ! -e "$work/slurm" ] || finish slurm "1000 kills of a job array and of Slurm"
done_testing
