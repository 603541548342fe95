#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# limits of users and QOS, enforced by a real slurmdbd: how much of a sweep starts, and what dl prints (doc/sweep-faults.md)
#
# usage: limits.sh          run it from a checkout, with dl in PATH
#
# Needs mariadbd, mariadb, slurmdbd, sacctmgr and the plugin accounting_storage_mysql;
# EXTRA=FOLDER: use unpacked packages below this root. Starts a private database and a
# private cluster of two nodes with four cores; each case is a sweep of 8 workers.
set -eu -o pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/limits.XXXXXX")
name=limits$$
root=${EXTRA:-}
libraries=$root/usr/lib/x86_64-linux-gnu
paths=${root:+$libraries:$root/lib/x86_64-linux-gnu}
port=$((25000 + $$ % 5000))
pids=()

down () {
    "$top/contrib/minicluster" down "$name" >/dev/null 2>&1 || true
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap down EXIT
trap 'exit 1' INT TERM

start_database () {
    local system=$root/usr/share/mysql
    mkdir "$work/data"
    # slurmdbd needs stored procedures, which need their system tables
    printf 'create database mysql;\nuse mysql;\n' | cat - "$system/mysql_system_tables.sql" \
        "$system/mysql_system_tables_data.sql" |
        LD_LIBRARY_PATH=$paths "$root/usr/sbin/mariadbd" --no-defaults --bootstrap --datadir="$work/data" \
            --user="$(id -un)" --lc-messages-dir="$system" >"$work/db.log" 2>&1
    LD_LIBRARY_PATH=$paths "$root/usr/sbin/mariadbd" --no-defaults --datadir="$work/data" --socket="$work/db" --skip-networking \
        --skip-grant-tables --user="$(id -un)" --innodb-lock-wait-timeout=900 \
        --lc-messages-dir="$system" >>"$work/db.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do
        LD_LIBRARY_PATH=$paths "$root/usr/bin/mariadb" --no-defaults -S "$work/db" -e 'create database a' 2>/dev/null && return
        sleep 0.1
    done
    echo "limits: mariadbd did not start:" >&2
    cat "$work/db.log" >&2
    exit 1
}

start_slurmdbd () {
    cat >"$work/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
DbdHost=localhost
DbdPort=$port
SlurmUser=$(id -un)
PidFile=$work/slurmdbd.pid
LogFile=$work/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=a
PluginDir=$libraries/slurm-wlm:/usr/lib/x86_64-linux-gnu/slurm-wlm
END
    chmod 600 "$work/slurmdbd.conf"
    MYSQL_UNIX_PORT=$work/db SLURM_CONF=$work/slurmdbd.conf LD_LIBRARY_PATH=$paths "$root/usr/sbin/slurmdbd" -D >/dev/null 2>&1 &
    pids+=($!)
    cat >>"$SLURM_CONF" <<END
AccountingStorageHost=localhost
AccountingStoragePort=$port
AccountingStoragePass=$dir/munge/socket
AccountingStorageEnforce=limits,qos
END
    sed -i 's|^AccountingStorageType=.*|AccountingStorageType=accounting_storage/slurmdbd|' "$SLURM_CONF"
    for _ in $(seq 100); do
        sacctmgr -n list cluster >"$work/said" 2>&1 && return
        sleep 0.1
    done
    echo "limits: slurmdbd did not start:" >&2
    cat "$work/slurmdbd.log" "$work/said" >&2
    exit 1
}

restart_slurmctld () {
    local pid
    pid=$(cat "$dir/run/slurmctld.pid")
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    slurmctld -f "$SLURM_CONF"
    for _ in $(seq 200); do
        [ "$(sinfo -h -o %T 2>/dev/null | sort -u | head -1)" = idle ] && return
        sleep 0.1
    done
    sinfo >&2
}

n=0
sweep () { # sweep WHAT SETTINGS RESOURCES: set a limit, and run 8 workers under it
    n=$((n + 1))
    sacctmgr -i modify user "$(id -un)" set MaxSubmitJobs=-1 MaxJobs=-1 qos=normal,small >/dev/null 2>&1 || true
    sacctmgr -i modify qos small set MaxSubmitJobsPerUser=-1 MaxJobsPerUser=-1 GrpSubmitJobs=-1 MaxTRESPerUser=cpu=-1 \
        >/dev/null 2>&1 || true
    # shellcheck disable=SC2086
    [ -z "$2" ] || sacctmgr -i modify $2 >"$work/said" || cat "$work/said" >&2
    sleep 1
    cat >"$work/s$n.conf" <<END
name = "s$n"; entrypoint = "sleep 0.5; dl log loss=1";
searcher = { name = "random"; metric = "loss"; max_trials = 24; max_concurrent_trials = 0; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 8; $3 };
END
    (
        cd "$work"
        status=0
        timeout 120 dl run "s$n.conf" >"out$n" 2>&1 || status=$?
        echo $status >"rc$n"
    ) &
    local most=0 now
    while [ ! -s "$work/rc$n" ]; do
        now=$(squeue -h -r -t R | wc -l)
        [ "$now" -le "$most" ] || most=$now
        sleep 0.2
    done
    wait $!
    echo "| $1 | $(cat "$work/rc$n") | $most | $(cat "$work/s$n-0001"/log/0*/0* 2>/dev/null | grep -c '"op":"result"' || true) | $(grep '^dl: ' "$work/out$n" | head -1) |"
    scancel -u "$(id -un)" 2>/dev/null || true
    while squeue -h | grep -q .; do sleep 0.2; done
}

"$top/contrib/minicluster" up --name="$name" --nodes=2 --cpus=4 >/dev/null
eval "$("$top/contrib/minicluster" env "$name")"
dir=$(dirname "$SLURM_CONF")
start_database
start_slurmdbd
{
    sacctmgr -i add cluster "$name"
    sacctmgr -i add qos small
    sacctmgr -i add account lab qos=normal,small
    sacctmgr -i add user "$(id -un)" account=lab defaultaccount=lab qos=normal,small defaultqos=normal
} >"$work/said" || { cat "$work/said" >&2; exit 1; }
restart_slurmctld

me="user $(id -un)"
echo "| limit | exit status | most tasks at once | results of 24 | what dl says |"
echo "| --- | --- | --- | --- | --- |"
sweep none '' ''
sweep "user's MaxJobs=2" "$me set MaxJobs=2" ''
sweep "user's MaxSubmitJobs=3" "$me set MaxSubmitJobs=3" ''
sweep "QOS MaxJobsPerUser=2" 'qos small set MaxJobsPerUser=2' 'qos = "small";'
sweep "QOS MaxSubmitJobsPerUser=3" 'qos small set MaxSubmitJobsPerUser=3' 'qos = "small";'
sweep "QOS GrpSubmitJobs=5" 'qos small set GrpSubmitJobs=5' 'qos = "small";'
sweep "QOS MaxTRESPerUser=cpu=3" 'qos small set MaxTRESPerUser=cpu=3' 'qos = "small";'
sweep "user's MaxSubmitJobs=0" "$me set MaxSubmitJobs=0" ''
sweep "a QOS that the user may not use" "$me set qos=normal" 'qos = "small";'
