#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The helpers that the plugin starts next to srun and next to a task: the collector, the sampler, the summary.
. "$srcdir/tests/lib.sh"
[ -f "$PLUGIN" ] || skip_all "the plugin was not built"
stub=$builddir/tests/fakes/spank
said=$work/said

# A stand-in for dl: it records its arguments and the type of its standard input, and saves what it reads there.
program "$work/dl" <<EOF
exec 3>&- # signals that it has started
case \$1 in
gather) echo token-of-the-collector ;;
esac
echo "called \$*, with \$(readlink /proc/self/fd/0 | tr -d '0-9[]')" >>"$said"
cat >"$work/heard.new"
mv "$work/heard.new" "$work/heard"
EOF
printf '#!/bin/sh\nexit 3\n' >"$work/mute"
head -c 64 /dev/zero >"$work/broken"
chmod +x "$work/mute" "$work/broken"
called () {
    grep -c called "$said" 2>/dev/null || :
}
heard () {
    wait_for 120 test -e "$work/heard"
    cat "$work/heard"
}

# ---- nodes answer srun

program "$work/tasks" <<'EOF'
# tasks NODE...: run one task on each of these nodes, which have the plugin, in a step of three
for n; do
    SLURMD_NODENAME=n$n SLURM_LAUNCH_NODE_IPADDR=${address:-127.0.0.1} SLURM_STEP_NODELIST=$SLURM_NODELIST SLURM_LOCALID=0 \
        SLURM_PROCID=$((n - 1)) SLURM_STEP_NUM_TASKS=${SLURM_STEP_NUM_TASKS:-3} FAKE_PROBE= "$stub" "$PLUGIN" 0 dl=torch 2>&1 |
        sed -n "s/^unset SLURM_DL_BOARD/dl: n$n has no board/p"
done
EOF
program "$work/forged" <<'EOF'
SLURM_DL_BOARD="${SLURM_DL_BOARD% *} $(echo "${SLURM_DL_BOARD#* }" | tr 0-9a-f 1-9a-f0)"
export SLURM_DL_BOARD
exec "${0%forged}tasks" 1 2 3
EOF
printf '#!/bin/sh\necho "dl: listens at ${SLURM_DL_BOARD%%%%? *}"\nexec %s 1 2 3\n' "$work/tasks" >"$work/port"
chmod +x "$work/port"
roll () { # roll [VARIABLE=VALUE]... -- OPTION... -- NODE...: print what srun reports if only these nodes answer
    settings=
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    env -i PATH="$PATH" stub="$stub" PLUGIN="$PLUGIN" SLURM_NODELIST='n[1-3]' FAKE_PROBE="$work/tasks $*" $settings "$stub" "$PLUGIN" local $options 2>&1 |
        sed -n 's/^dl: //p' | sed 's/port [0-9]*/port P/'
}
missing () {
    echo "no answer from $1: dl.so is missing there, so that tasks run without $2, or it cannot reach TCP port P of this host, or no task ran; see dl-spank(8)"
}
is "$(roll -- dl=torch -- 1 2 3)" "" "all nodes answer"
is "$(roll -- dl=torch -- 1 3)" "$(missing n2 --dl=torch)" "a node that does not answer is named"
is "$(roll -- dl=torch dl-bind=closest --)" "$(missing n1,n2,n3 '--dl=torch --dl-bind=closest')" "so are all of them"
is "$(roll SLURM_JOB_ID=5 -- dl=torch --)" "$(missing 'any node of this step' --dl=torch)" "in an allocation srun knows no nodes of the step"
is "$(roll SLURM_JOB_ID=5 -- dl=torch -- 3)" "$(missing n1,n2 --dl=torch)" "but its tasks do"
is "$(roll address=::1 -- dl=torch -- 1 2 3)" "" "over IPv6"
is "$(roll SLURM_EXPORT_ENV=NONE -- dl=torch -- 1)" "$(missing n2,n3 --dl=torch)" "also if tasks get only Slurm's variables"
is "$(roll -- dl=off --)" "" "nor without a request"
is "$(roll FAKE_COMPONENTS=3 -- dl=torch -- 1 2)" "$(missing n3 --dl=torch)" "components share one list"
is "$(roll "FAKE_PROBE=$work/forged" -- dl=torch --)" "$(missing n1,n2,n3 --dl=torch)" "a caller without the token answers for nobody"
alone="SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=1 SLURM_NODELIST=n1"
# shellcheck disable=SC2016,SC2086
{
    is "$(roll $alone -- dl=torch -- 1)" "n1 has no board" "a single task answers, and asks nobody"
    is "$(roll $alone -- dl=torch --)" "$(missing n1 --dl=torch)" "a node of one task that does not answer is named"
    is "$(roll $alone FAKE_COMPONENTS=2 -- dl=torch --)" "$(missing n1 --dl=torch)" "so is that of a component"
    program "$work/count" <<'EOF'
# count the children of srun; a shell of srun's may be in between
srun=$PPID
case $(cat /proc/$srun/comm) in
*sh) srun=$(sed 's/.*) . //; s/ .*//' /proc/$srun/stat) ;;
esac
read -r children </proc/$srun/task/$srun/children
echo "dl: $(echo "$children" | wc -w)"
EOF
    for step in '1 1 1' '1 2 1' '2 2 1' '1 1 2'; do
        set -- $step
        roll SLURM_STEP_NUM_NODES=$1 SLURM_STEP_NUM_TASKS=$2 FAKE_COMPONENTS=$3 FAKE_PROBE=$work/count -- dl=torch -- | sed -n 1p
    done >"$work/counts"
}
is "$(tr '\n' ' ' <"$work/counts")" "1 2 2 2 " "srun of one task starts no process beside it"
printf 'SrunPortRange = 61234-61239\n' >"$work/slurm.conf"
is "$(roll SLURM_CONF="$work/slurm.conf" "FAKE_PROBE=$work/port" -- dl=torch --)" "listens at 6123" "in srun's port range"

# ---- srun and the collector

vars=
as_srun () { # as_srun OPTION... -- WORD...: print the output of srun and of its step
    rm -f "$said" "$work/heard"
    env -i PATH="$PATH" FAKE_PROBE='echo "step ${SLURM_DL_GATHER:-none}"' $vars "$stub" "$PLUGIN" local "$@" 2>&1
}
vars="SLURM_NODELIST=n[1-2] SLURM_DL_GATHER=of-an-outer-step"
out=$(as_srun dl-check=full -- "dl=$work/dl")
like "$out" '^step token-of-the-collector$' "a checked step has the token of its collector"
like "$out" '^status 0$' "and continues"
heard >/dev/null
is "$(cat "$said")" "called gather full plain, with socket:" "once, and how they are checked"
out=$(as_srun dl-debug=600 -- "dl=$work/dl")
heard >/dev/null
is "$(cat "$said")" "called gather none table, with socket:" "--dl-debug alone only prints the table"
vars="SLURM_JOB_GPUS=0 SLURM_NODELIST=n1"
as_srun -- check=quick "dl=$work/dl" >/dev/null
heard >/dev/null
like "$(cat "$said")" '^called gather quick plain' "a default of the site checks nodes, too"
vars="FAKE_COMPONENTS=3 SLURM_NODELIST=n1"
as_srun dl-check=quick -- "dl=$work/dl" >/dev/null
heard >/dev/null
is "$(called)" 1 "a heterogeneous job has one collector"
vars=SLURM_DL_GATHER=of-an-outer-step
out=$(as_srun dl-check=quick -- "dl=$work/mute")
like "$out" '^error dl: --dl-check: each node is checked alone: cannot run .*/mute: ' "a silent collector is reported"
like "$out" '^step none$' "and the step has no token, nor that of another"
like "$(as_srun dl-debug=600 -- "dl=$work/mute")" '^error dl: --dl-debug: no table of the ranks: cannot run ' "the same holds for --dl-debug"
as_srun dl=torch -- "dl=$work/dl" >/dev/null
is "$(called)" "" "a step without these options starts nothing"

# ---- the summary of --dl-monitor, after the step

vars=
as_srun dl-monitor=5 -- "dl=$work/dl" >/dev/null
is "$(cat "$said")" "called monitor --summary 1234.0, with /dev/null" "srun prints the summary of its step"
is "$(called)" 1 "once"

# ---- a task and its sampler

task () { # task RANK OPTION...: run one of two tasks of a node
    rank=$1
    shift
    rm -f "$said" "$work/heard"
    env -i PATH="$PATH" $vars SLURM_PROCID="$rank" SLURM_LOCALID="$rank" SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NUM_TASKS=2 \
        SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=n1 SLURMD_NODENAME=n1 FAKE_PROBE="$probe" "$stub" "$PLUGIN" 0 "$@" -- "dl=$work/${dl:-dl}" 2>&1
}
probe="until [ -e $said ]; do sleep 0.1; done"
task 0 dl-monitor=5 >/dev/null
heard >/dev/null
is "$(cat "$said")" "called sample 5, with socket:" "the first task of a node starts the sampler, which notices the step's end"
probe=:
task 1 dl-monitor=5 >/dev/null
is "$(called)" "" "the others do not"
task 0 dl=torch >/dev/null
is "$(called)" "" "nor a task without --dl-monitor"

# ---- a helper that is not ready when the step ends
program "$work/slow" <<EOF
[ "\$1" != check-rank ] || exit 0
echo \$\$ >>"$said.pids"
exec sleep 1000
EOF
program "$work/ready" <<EOF
[ "\$1" != check-rank ] || exit 0
exec 3>&-
: >"$said.ready"
cat >/dev/null
sleep 0.3
mv "$said.pids" "$said.end"
EOF
gone () {
    # shellcheck disable=SC2046
    ! kill -0 $(cat "$said.pids") 2>/dev/null
}
probe="until [ \$(grep -c . $said.pids 2>/dev/null) = 2 ]; do sleep 0.1; done"
mkdir "$work/debug"
cd "$work/debug" || exit 1
dl=slow task 0 dl-monitor=5 dl-debug=600 | cat >out # cat ends when no process holds the pipe open
holds "a helper that is still starting when the step ends is killed" wait_for 120 gone
rm out
is "$(ls)" "" "and the folder of --dl-debug is removed"
probe=:
is "$(task 0 dl-debug=hang:600 | grep '^error')" "" "a started watcher is not an error"
rm -rf dl-debug-*
probe="until [ -e $said.ready ]; do sleep 0.1; done"
dl=ready task 0 dl-monitor=5 | cat >out
holds "a ready one ends by itself" wait_for 120 test -e "$said.end"
mv "$said.end" "$said.pids"
rm "$said.ready"
vars=FAKE_PATIENCE=5000
dl=ready task 0 dl-monitor=5 >out
ok "$(test -e "$said.end"; echo $?)" "and the step waits for that"
vars=
program "$work/busy" <<EOF
[ "\$1" != check-rank ] || exit 0
exec 3>&- >/dev/null 2>&1
: >"$said.ready"
cat >/dev/null
sleep 0.05
: >"$said.end"
EOF
for _ in $(seq 20); do # one success is enough: on a busy machine the helper may get too little CPU time
    rm -f "$said.ready" "$said.end"
    dl=busy task 0 dl-monitor=5 >/dev/null
    [ ! -e "$said.end" ] || break
    wait_for 120 test -e "$said.end"
    rm "$said.end"
done
holds "slurmstepd waits for one that gets no CPU for 50 ms" [ -e "$said.end" ]

# ---- a file system that hangs

vars="FAKE_HUNG=$work/dl SLURM_NODELIST=n1"
hung='it does not answer: does its file system hang\?$'
out=$(as_srun dl-check=quick dl-monitor=5 -- "dl=$work/dl")
like "$out" "^error dl: --dl-check: each node is checked alone: cannot run $work/dl: $hung" "srun reports that dl hangs"
like "$out" '^step none$' "and the step starts"
like "$out" "^error dl: --dl-monitor: no summary: $work/dl: $hung" "and the step's end does not wait for it silently"
probe='echo started'
out=$(task 0 dl-check=quick dl-monitor=5 dl-debug=600)
like "$out" "^error dl: --dl-check: this node is not checked: $work/dl: $hung" "a task reports it, too"
like "$out" "^error dl: --dl-monitor: cannot run $work/dl: ${hung%?}; nothing is sampled$" "for each of its helpers"
like "$out" '^started$' "and the task starts"
is "$(called)" "" "nothing is run"
vars=
rm -rf dl-debug-*
dl=endless
printf '#!/bin/sh\nexec sleep 1000\n' >"$work/endless"
chmod +x "$work/endless"
like "$(task 0 dl-check=quick)" "^error dl: --dl-check: this node is not checked: $work/endless: $hung" "one that hangs later is killed"
as_srun dl-check=quick -- "dl=$work/endless" | cat >out # cat ends when no process holds the pipe open
like "$(cat out)" "^error dl: --dl-check: each node is checked alone: cannot run $work/endless: $hung" "also beside srun"
dl=

# ---- a dl that cannot be run

out=$(env -i SLURM_PROCID=0 SLURM_LOCALID=0 "$stub" "$PLUGIN" 0 dl-check=quick -- "dl=$work/broken" 2>&1)
is "$(echo "$out" | grep -c '^status 0')" 1 "a dl that is not a program: the task continues, once"
like "$out" '^error dl: --dl-check: this node is not checked: .*/broken: it failed$' "and reports it"

done_testing
