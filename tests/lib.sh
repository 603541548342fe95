# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# TAP for shell tests: source this, call ok, is, like, runs ..., and end with done_testing.  The test starts in $work, a
# temporary folder.  On exit, that folder is removed and the clusters of cluster_up are stopped.
n=0
failed=0

ok () { # ok STATUS NAME
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        failed=$((failed + 1))
    fi
}

is () { # is GOT WANTED NAME
    [ "$1" = "$2" ]
    ok $? "$3"
    [ "$1" = "$2" ] || printf 'got:    %s\nwanted: %s\n' "$1" "$2" | sed 's/^/# /'
}

# Check that a command succeeds; if not, print it: holds NAME COMMAND...
holds () {
    holds_name=$1
    shift
    "$@"
    set -- $? "$@"
    ok "$1" "$holds_name"
    [ "$1" -eq 0 ] || { shift; echo "not true: $*" | sed 's/^/# /'; }
}

like () { # like TEXT PATTERN NAME
    printf '%s\n' "$1" | grep -qE -e "$2"
    set -- $? "$@"
    ok "$1" "$4"
    [ "$1" -eq 0 ] || { echo "# no line matches: $3"; printf '%s\n' "$2" | sed 's/^/# /'; }
}

# Run a command with a time limit, or a shell function without one (timeout(1) cannot run it): at_most SECONDS COMMAND...
at_most () {
    case $(command -v "$2") in /*) set -- timeout "$@" ;; *) shift ;; esac
    "$@"
}

# Run a command, with its output in the file "out", and check its exit status.  If the status is wrong, print the end of the
# output: runs STATUS NAME COMMAND...
runs () {
    runs_wanted=$1 runs_name=$2
    shift 2
    at_most 300 "$@" >out 2>&1 </dev/null
    set -- $?
    is "$1" "$runs_wanted" "$runs_name"
    [ "$1" -eq "$runs_wanted" ] || tail -5 out | sed 's/^/# /'
}

# Check that a command rejects bad input with this exit status and one line of output, which is also in the file "out":
# refused STATUS PATTERN NAME COMMAND...
refused () {
    refused_status=$1 refused_pattern=$2 refused_name=$3
    shift 3
    runs "$refused_status" "$refused_name: status" "$@"
    is "$(grep -c '' out)" 1 "$refused_name: one line"
    like "$(cat out)" "$refused_pattern" "$refused_name"
}

# Write an executable shell script: program FILE <TEXT
program () {
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}

skip_all () { # skip_all WHY
    echo "1..0 # SKIP $1"
    exit 0
}

bail_out () { # bail_out WHY [FILE]: end the test, which fails; FILE has the output to print
    [ -z "${2:-}" ] || sed 's/^/# /' "$2"
    echo "Bail out! $1"
    exit 1
}

skip () { # skip NAME WHY
    n=$((n + 1))
    echo "ok $n # SKIP $1: $2"
}

# Wait until a command succeeds.  done_testing reports a timeout: wait_for SECONDS COMMAND...
wait_for () {
    read -r now rest </proc/uptime
    until=$((${now%.*} + $1))
    shift
    while ! "$@" >/dev/null 2>&1; do
        read -r now rest </proc/uptime
        [ "${now%.*}" -lt $until ] || {
            overdue=$((${overdue:-0} + 1))
            echo "# it has not come: $*" >&2
            return 1
        }
        sleep 0.1
    done
}

# Run a slow command in the background, with its output in NAME.out: beside NAME COMMAND...
beside () {
    beside_name=$1
    shift
    timeout 300 "$@" >"$beside_name.out" 2>&1 &
    eval "beside_$beside_name=$!"
}

ended () { # ended NAME: wait for that command, and return its exit status
    eval "wait \$beside_$1"
}

# Check that all nodes of the cluster become idle once Slurm has cleaned up.
unharmed () {
    wait_for 300 sh -c '[ "$(sinfo -h -N -o %T | sort -u)" = idle ]'
    is "$(sinfo -h -N -o %T | sort -u)" idle "no node was harmed"
}

count_tap () { # count_tap NAME <TAP: count the results of another script as ours
    while IFS= read -r line; do
        case $line in
        "ok - "*" # SKIP "*) skip "${line#ok - }" "see there" ;;
        "ok - "*) ok 0 "$1: ${line#ok - }" ;;
        "not ok - "*) ok 1 "$1: ${line#not ok - }" ;;
        *) echo "# $line" ;;
        esac
    done
}

# Run a script that prints TAP in its own folder, and count its results as ours: tap NAME COMMAND...
tap () {
    name=$1
    shift
    mkdir -p "$work/$name"
    (cd "$work/$name" && timeout 1200 "$@") >"$work/$name.out" 2>"$work/$name.err"
    status=$?
    count_tap "$name" <"$work/$name.out"
    is "$status" 0 "$name: ends"
    [ "$status" -eq 0 ] || tail -5 "$work/$name.err" | sed 's/^/# /'
}

done_testing () {
    [ -z "${overdue:-}" ] || is "$overdue" 0 "no wait_for timed out"
    echo "1..$n"
    [ "$failed" -eq 0 ]
    exit
}

# Count the events of one kind in an experiment's log: count NAME OP
count () {
    cat "$1"/log/0*/0* | grep -c "\"op\":\"$2\""
}

# Print what Python makes of the value d: json EXPRESSION <JSON
json () {
    python3 -c 'import json, sys
d = json.load(sys.stdin)
exec(f"print({sys.argv[1]})")' "$1"
}

# Write NAME.conf, an experiment that minimizes the loss: write_conf NAME ENTRYPOINT SEARCHER [SETTING]...
# A SETTING replaces the default of the same name.
write_conf () {
    {
        printf 'name = "%s";\nentrypoint = %s;\nsearcher = { metric = "loss"; %s };\n' "${1##*/}" "$2" "$3"
        shift 3
        [ $# -eq 0 ] || printf '%s\n' "$@"
        for setting in 'hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };' 'resources = { workers = 2; };' \
            'worker = { heartbeat = 1; lease = 60; grace = 5; };' 'reproducibility = { experiment_seed = 5; };'; do
            case "$*" in *"${setting%% *} = "*) ;; *) echo "$setting" ;; esac
        done
    } >"$1.conf"
}

# Print how often to repeat a randomized case: often SHORT LONG.  `contrib/quickstart soak` repeats it LONG times.
often () {
    [ -z "${DL_TEST_SOAK:-}" ] && echo "$1" || echo "$2"
}

# Tests control their training scripts with files that they create later in the same folder, which frozen code would not
# see.  tests/launcher/code.t tests freezing.
DL_FREEZE=false
export DL_FREEZE

# ---- private clusters

minicluster=$srcdir/contrib/minicluster
clusters=

# Slurm and fusermount3 need a user with a name.
has_name () {
    id -un >/dev/null 2>&1
}

slurm_is_here () {
    PATH=$PATH:/usr/sbin:/sbin
    command -v slurmctld >/dev/null && command -v munged >/dev/null && has_name
}

slurm_loads_plugin () {
    [ -f "$PLUGIN" ] && case $(nm -D "$PLUGIN") in *__asan_*) false ;; esac
}

need_slurm () {
    slurm_is_here || skip_all "Slurm is not installed, or this user has no name"
}

need_cluster () { # Slurm, and a plugin that it can load
    need_slurm
    slurm_loads_plugin || skip_all "the plugin was not built, or has sanitizers"
}

fuse_is_here () {
    [ -x "$builddir/tests/faults/nfs" ] && [ -w /dev/fuse ] && command -v fusermount3 >/dev/null && has_name
}

as_ordinary () { # as_ordinary COMMAND...: run it as a non-root user; Slurm 26.05 rejects 'nobody'
    if [ "$(id -u)" -eq 0 ]; then
        timeout 300 setpriv --reuid=bin --regid=bin --clear-groups env HOME="$work" "$@"
    else
        timeout 300 "$@"
    fi
}

# Print a command that gives a test private mounts: an ordinary user also needs a user namespace.  Print nothing if neither
# is allowed.
private_mounts () {
    for command in "unshare -m" "unshare -Urm"; do
        $command mount -t tmpfs none /mnt 2>/dev/null && echo "$command" && return
    done
    return 1
}

need_hosts () {
    [ "$(id -u)" -eq 0 ] || skip_all "hosts need root"
}

try_cluster () { # try_cluster NAME OPTION...: start a cluster, and make it the current one
    cluster=$1$$
    shift
    clusters="$clusters $cluster"
    timeout 300 "$minicluster" up --name="$cluster" "$@" >"$work/up" 2>&1 || { sed 's/^/# /' "$work/up"; return 1; }
    eval "$("$minicluster" env "$cluster")"
    plugstack=${SLURM_CONF%/*}/plugstack.conf
}

cluster_up () {
    try_cluster "$@" || bail_out "no cluster"
}

hosts_up () { # like cluster_up, but with a network namespace for each node, and $hosts set, if possible
    hosts=--hosts
    [ "$(id -u)" -eq 0 ] && try_cluster "$@" $hosts && return
    hosts=
    cluster_up "$@"
}

own_stepd () { # put a slurmd for PATH into bin/ that starts the test's bin/slurmstepd; $stepd is Slurm's own
    mkdir bin
    program bin/slurmd <<END
PATH=\${PATH#*:}
exec slurmd -d $work/bin/slurmstepd "\$@"
END
    stepd=$(readlink -f "$(command -v slurmstepd)")
}

cluster_down () { # stop the current cluster
    timeout 300 "$minicluster" down "$cluster"
}

# ---- the test's folder, and cleanup

clean_up () {
    for cluster in $clusters; do
        cluster_down >/dev/null 2>&1
    done
    cd /
    chmod -R u+w "$work" 2>/dev/null
    rm -rf "$work"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/dl-test.XXXXXX")
trap clean_up EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1
work=$(pwd -P)
unset DL_DIR
