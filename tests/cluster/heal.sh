# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# for tests of healing: a DDP training that knows nothing of dl, faults, and what was told of them; source it after tests/lib.sh
export PATH="$builddir/launcher:$PATH" HOME="$work"
unset DL_FREEZE RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip_all "no python3-torch"

# The code is frozen: what the script writes where it runs is its attempt's.
mkdir code
cp "$srcdir/tests/cluster/healed.py" code/

# torchrun with PET_TEE puts the rank before each line
line='^\(\[default0\]:\)*'
begins () { # begins NAME: the tests' present experiment
    trial=$1-0001/trials/0001
    attempt=1
}
trains () { # this attempt or, if it did not get so far, a later one
    for a in $attempt $((attempt + 1)) $((attempt + 2)); do
        grep -q "${line}step=" "$trial/a.$a/log" 2>/dev/null && attempt=$a && return
    done
    return 1
}
processes () { # processes NAME: pids of the experiment's processes of that name
    for p in /proc/[0-9]*; do
        [ "$(cat "$p/comm" 2>/dev/null)" = "$1" ] || continue
        cat "$p/environ" 2>/dev/null | tr '\0' '\n' | grep -qx "DL_ATTEMPT_DIR=.*/$trial/a.$attempt" && echo "${p#/proc/}"
    done
}
of_rank () { # of_rank RANK NAME
    for p in $(processes "$2"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "SLURM_PROCID=$1" && echo "$p" && return
    done
}
# Wait until it trains; do it; and until it trains again.
fault () { # fault NAME COMMAND...
    what=$1
    shift
    wait_for 300 trains || { ok 1 "$what: it trains"; sed 's/^/# /' "$trial/a.$attempt/log"; return; }
    had=$(sed -n "s/${line}step=\([0-9]*\) .*/\2/p" "$trial/a.$attempt/log" | tail -1)
    begin=$(date +%s)
    "$@"
    attempt=$((attempt + 1))
    wait_for 600 trains
    ok $? "$what: it trains again"
    echo "# after $(($(date +%s) - begin)) s"
    first=$(sed -n "s/$line[0-9]* ranks begin at step \([0-9]*\)\$/\2/p" "$trial/a.$attempt/log")
    [ "${first:-0}" -gt "$had" ]
    ok $? "$what: from its newest file"
}
told () { # told REGEX NAME
    like "$(cat "$trial/a.$((attempt - 1))/healing")" "$1" "$2"
}
causes () { # causes NAME: of its attempts that failed, in the order of the log
    find "$1"-0001/log -type f ! -name "*.pack" | sort | xargs cat | sed -n 's/.*"op": *"fail".*"cause": *"\([A-Za-z]*\)".*/\1/p' | tr '\n' ' '
}
end () { # end NAME
    touch "$work/enough"
    timeout 300 dl wait "$1" >/dev/null 2>&1
    is "$(dl show --json "$1" | python3 -c 'import json,sys; print(json.load(sys.stdin)["state"])')" completed "$1: it ends"
    rm -f "$work/enough"
}
