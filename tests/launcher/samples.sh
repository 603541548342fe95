# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Read the files of monitors: source this after lib.sh, in the test's folder.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip_all "no python3-h5py"
unset DL_MONITOR_DIR DL_ATTEMPT_DIR SLURM_SUBMIT_DIR

# monitors: print the monitors of this test only, because others may run on this machine.
monitors () {
    for p in $(pgrep -f '^dl sample'); do
        tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | grep -qx -e "SLURM_CONF=${SLURM_CONF:-none}" -e "MONITOR_TEST=$work" && echo "$p"
    done
}
no_monitors () { [ -z "$(monitors)" ]; }

# last|most FILE NAME...: print the last or largest value of each.  wait FILE NAME N: wait until there are N values.
cat >read.py <<'END'
import os, sys, time, h5py
what, path, *names = sys.argv[1:]
def values(name):
    with h5py.File(path) as f:
        rows, texts = f["metrics"][1:], f["names"][:].astype(str)
    return rows[texts[rows["name"]] == name]["value"]
if what == "wait":
    while not os.path.exists(path) or len(values(names[0])) < int(names[1]):
        time.sleep(0.2)
else:
    found = [values(n) for n in names]
    print(*["none" if not len(v) else v[-1] if what == "last" else v.max() for v in found])
END
last () { /usr/bin/python3 read.py last "$@"; }
most () { /usr/bin/python3 read.py most "$@"; }
evaluates () { # evaluates EXPRESSION NAME
    [ "$(/usr/bin/python3 -c "print(int($1))")" = 1 ]
    ok $? "$2 ($1)"
}
