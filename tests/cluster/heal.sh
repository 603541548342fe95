# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Helpers for tests of healing: run a DDP training that does not use dl, inject faults, and check what dl reports.
# Source this after tests/lib.sh.
export PATH="$builddir/launcher:$PATH" HOME="$work"
unset DL_FREEZE RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip_all "no python3-torch"

# The code is frozen: the script runs in, and writes to, a folder of its attempt.
mkdir code
cp "$srcdir/tests/cluster/healed.py" code/

# torchrun with PET_TEE prefixes each line with the rank
line='^\(\[default0\]:\)*'
begins () { # begins NAME: make it the current experiment, at its first attempt
    trial=$1-0001/trials/0001
    attempt=1
}
submit_training () { # submit_training NAME RANKS RESOURCES: on two nodes with RANKS each; make it the current experiment
    cat >"code/$1.conf" <<END
name = "$1";
entrypoint = "/usr/bin/python3 healed.py --work $work [--resume {resume_dir}/ckpt.pt]";
searcher = { name = "single"; metric = "loss"; max_length = 1000000; };
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { nodes_per_trial = 2; ranks_per_node = $2; framework = "torch"; $3 };
max_restarts = 20;
END
    dl run --detach "code/$1.conf" >out 2>&1
    is $? 0 "$1: submitted"
    begins "$1"
}
trains () { # whether this attempt, or one of the next two, has logged a step; sets $attempt
    for a in $attempt $((attempt + 1)) $((attempt + 2)); do
        grep -q "${line}step=" "$trial/a.$a/log" 2>/dev/null && attempt=$a && return
    done
    return 1
}
processes () { # processes NAME: print the pids of the attempt's processes of that name
    for p in /proc/[0-9]*; do
        [ "$(cat "$p/comm" 2>/dev/null)" = "$1" ] || continue
        cat "$p/environ" 2>/dev/null | tr '\0' '\n' | grep -qx "DL_ATTEMPT_DIR=.*/$trial/a.$attempt" && echo "${p#/proc/}"
    done
}
of_rank () { # of_rank RANK NAME: print the pid of the rank's process of that name
    for p in $(processes "$2"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "SLURM_PROCID=$1" && echo "$p" && return
    done
}
# Wait until the experiment trains, run the command, and check that it trains again, from its newest file.
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
told () { # told REGEX NAME: check the healing report of the attempt that failed
    like "$(cat "$trial/a.$((attempt - 1))/healing")" "$1" "$2"
}
causes () { # causes NAME: print the causes of its failed attempts, in the order of the log
    find "$1"-0001/log -type f ! -name "*.pack" | sort | xargs cat | sed -n 's/.*"op": *"fail".*"cause": *"\([A-Za-z]*\)".*/\1/p' | tr '\n' ' '
}
end () { # end NAME: let it end, and check that it is complete
    touch "$work/enough"
    timeout 300 dl wait "$1" >/dev/null 2>&1
    is "$(dl show --json "$1" | python3 -c 'import json,sys; print(json.load(sys.stdin)["state"])')" completed "$1: it ends"
    rm -f "$work/enough"
}
