# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# TAP for shell tests: source this, call is/ok/run, end with done_testing.  It begins in $work, a folder of
# its own; it and the clusters of cluster_up are gone at the end.
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

like () { # like TEXT PATTERN NAME
    printf '%s\n' "$1" | grep -qE -e "$2"
    set -- $? "$@"
    ok "$1" "$4"
    [ "$1" -eq 0 ] || { echo "# no line matches: $3"; printf '%s\n' "$2" | sed 's/^/# /'; }
}

# A command that ends in time, or a function: at_most SECONDS COMMAND...
at_most () {
    case $(command -v "$2") in /*) set -- timeout "$@" ;; *) shift ;; esac
    "$@"
}

# What a command says is in the file "out"; where it should have succeeded, its end is shown: runs STATUS NAME COMMAND...
runs () {
    runs_wanted=$1 runs_name=$2
    shift 2
    at_most 300 "$@" >out 2>&1 </dev/null
    set -- $?
    is "$1" "$runs_wanted" "$runs_name"
    [ "$1" -eq "$runs_wanted" ] || tail -5 out | sed 's/^/# /'
}

# Bad input has its status and one line, which is in the file "out", too: refused STATUS PATTERN NAME COMMAND...
refused () {
    refused_status=$1 refused_pattern=$2 refused_name=$3
    shift 3
    runs "$refused_status" "$refused_name: status" "$@"
    is "$(grep -c '' out)" 1 "$refused_name: one line"
    like "$(cat out)" "$refused_pattern" "$refused_name"
}

# A program of the test's own, a script for sh: program FILE <TEXT
program () {
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}

skip_all () { # skip_all WHY
    echo "1..0 # SKIP $1"
    exit 0
}

skip () { # skip NAME WHY
    n=$((n + 1))
    echo "ok $n # SKIP $1: $2"
}

# Wait until a command succeeds: wait_for SECONDS COMMAND...
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

# A command that takes its time, beside what follows; its output is in NAME.out: beside NAME COMMAND...
beside () {
    beside_name=$1
    shift
    timeout 300 "$@" >"$beside_name.out" 2>&1 &
    eval "beside_$beside_name=$!"
}

ended () { # ended NAME: wait for it, and have its status
    eval "wait \$beside_$1"
}

# All nodes of the test's cluster are idle, or are after what ran has been cleared away.
unharmed () {
    wait_for 300 sh -c '[ "$(sinfo -h -N -o %T | sort -u)" = idle ]'
    is "$(sinfo -h -N -o %T | sort -u)" idle "no node was harmed"
}

count_tap () { # count_tap NAME <LINES: of a script
    while IFS= read -r line; do
        case $line in
        "ok - "*" # SKIP "*) skip "${line#ok - }" "see there" ;;
        "ok - "*) ok 0 "$1: ${line#ok - }" ;;
        "not ok - "*) ok 1 "$1: ${line#not ok - }" ;;
        *) echo "# $line" ;;
        esac
    done
}

# Run a script that speaks TAP in a folder of its own, and count its lines: tap NAME COMMAND...
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
    [ -z "${overdue:-}" ] || is "$overdue" 0 "each state that was awaited has come"
    echo "1..$n"
    [ "$failed" -eq 0 ]
    exit
}

# Events of a kind in the log of an experiment: count NAME OP
count () {
    cat "$1"/log/0*/0* | grep -c "\"op\":\"$2\""
}

# How often a case of chance is tried: often SHORT LONG, in contrib/quickstart test and soak.
often () {
    [ -z "${DL_TEST_SOAK:-}" ] && echo "$1" || echo "$2"
}

# Scripts of the tests are often told by files that come later, or leave some, in their folder; tests/launcher/code.t is
# of frozen code.
DL_FREEZE=false
export DL_FREEZE

# ---- private clusters

minicluster=$srcdir/contrib/minicluster
clusters=

# Slurm runs as a user who has a name; so does fusermount3.
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

need_cluster () { # one with the plugin
    need_slurm
    slurm_loads_plugin || skip_all "the plugin was not built, or has sanitizers"
}

fuse_is_here () {
    [ -x "$builddir/tests/faults/nfs" ] && [ -w /dev/fuse ] && command -v fusermount3 >/dev/null && has_name
}

as_ordinary () { # as_ordinary COMMAND...: as a user with a name who is not root; to Slurm 26.05 'nobody' is no user
    if [ "$(id -u)" -eq 0 ]; then
        timeout 300 setpriv --reuid=bin --regid=bin --clear-groups env HOME="$work" "$@"
    else
        timeout 300 "$@"
    fi
}

# A command after which mounts are a test's own, as an ordinary user, too, who makes a name space in which that is so.
# Prints nothing where neither is allowed.
private_mounts () {
    for command in "unshare -m" "unshare -Urm"; do
        $command mount -t tmpfs none /mnt 2>/dev/null && echo "$command" && return
    done
    return 1
}

need_hosts () {
    [ "$(id -u)" -eq 0 ] || skip_all "hosts need root"
}

try_cluster () { # try_cluster NAME OPTION...: up, and in use
    cluster=$1$$
    shift
    clusters="$clusters $cluster"
    timeout 300 "$minicluster" up --name="$cluster" "$@" >"$work/up" 2>&1 || { sed 's/^/# /' "$work/up"; return 1; }
    eval "$("$minicluster" env "$cluster")"
    plugstack=${SLURM_CONF%/*}/plugstack.conf
}

cluster_up () {
    try_cluster "$@" || { echo "Bail out! no cluster"; exit 1; }
}

hosts_up () { # on hosts of their own (then $hosts is set) where that is possible
    hosts=--hosts
    [ "$(id -u)" -eq 0 ] && try_cluster "$@" $hosts && return
    hosts=
    cluster_up "$@"
}

own_stepd () { # a slurmd, for PATH, that starts bin/slurmstepd of the test; Slurm's is $stepd
    mkdir bin
    program bin/slurmd <<END
PATH=\${PATH#*:}
exec slurmd -d $work/bin/slurmstepd "\$@"
END
    stepd=$(readlink -f "$(command -v slurmstepd)")
}

cluster_down () { # the one that is in use
    timeout 300 "$minicluster" down "$cluster"
}

# ---- a folder of the test's own, and its end

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
