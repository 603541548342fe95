# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What monitors have written: source this after lib.sh, in the folder of the test.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip_all "no python3-h5py"
unset DL_MONITOR_DIR DL_ATTEMPT_DIR SLURM_SUBMIT_DIR

# Monitors of this test only: others may run on this machine.
monitors () {
    for p in $(pgrep -f '^dl sample'); do
        tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | grep -qx -e "SLURM_CONF=${SLURM_CONF:-none}" -e "MONITOR_TEST=$work" && echo "$p"
    done
}
no_monitors () { [ -z "$(monitors)" ]; }

# NODE NAME: last, most and number of the values of a name
cat >read.py <<'END'
import sys, h5py
with h5py.File(sys.argv[1]) as f:
    rows, names = f["metrics"][1:], f["names"][:].astype(str)
v = rows[names[rows["name"]] == sys.argv[2]]["value"]
print(v[-1] if len(v) else "none", v.max() if len(v) else "none", len(v))
END
last () { /usr/bin/python3 read.py "$1" "$2" | cut -d' ' -f1; }
most () { /usr/bin/python3 read.py "$1" "$2" | cut -d' ' -f2; }
holds () { # holds EXPRESSION NAME
    [ "$(/usr/bin/python3 -c "print(int($1))")" = 1 ]
    ok $? "$2 ($1)"
}
