#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Follow doc/administrator.md on a private cluster: enabling the plugin, PluginDir, prolog, health checks, pending jobs, removal.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster
page=$srcdir/doc/administrator.md
for v in $(env | sed -n 's/^\(SLURM[A-Z_]*\)=.*/\1/p'); do [ "$v" = SLURM_PREFIX ] || unset "$v"; done
unset RANK CUDA_VISIBLE_DEVICES MASTER_PORT MASTER_ADDR DL_ATTEMPT_DIR SLURM_DL_GATHER

# ---- take the scripts from the page, with the paths of the private cluster

block () { # block TEXT: print the page's indented block that contains TEXT
    awk -v text="$1" '/^    / { b = b substr ($0, 5) "\n"; if (index ($0, text)) found = 1; next } /^$/ && b { b = b "\n"; next }
        { if (found) exit; b = "" } END { if (found) printf "%s", b }' "$page"
}
: >environment
for name in dl-health dl-prolog; do
    block "# /etc/slurm/$name:" >"$work/$name.page"
    like "$(head -n 1 "$name.page")" '^#!/bin/sh$' "the page has $name"
    sed "s|^PATH=.*|PATH=$builddir/launcher:\$PATH; . $work/environment|" "$name.page" >"$name"
    chmod +x "$name"
done
mkdir gpus bin plugins other
ln -s "$builddir/tests/fakes/.libs/nvml.so" gpus/libnvidia-ml.so.1
printf '#!/bin/sh\ncat >>%s\n' "$work/syslog" >bin/logger
chmod +x bin/logger
fault () { # fault [FAULTS]: set the faults that the stand-in driver shows to programs that slurmd starts
    cat >environment.new <<END
PATH=$work/bin:$builddir/launcher:$PATH
SLURM_CONF=$SLURM_CONF
LD_LIBRARY_PATH=$work/gpus
FAKE_FAULTS=$1
export PATH SLURM_CONF LD_LIBRARY_PATH FAKE_FAULTS
END
    mv environment.new environment
}

# ---- without the plugin, then with the package's file for plugstack.conf

slurm_plugins=${SLURM_PREFIX:+$SLURM_PREFIX/lib/slurm}
[ -n "$slurm_plugins" ] || slurm_plugins=$(for d in /usr/lib/*/slurm-wlm /usr/lib/*/slurm /usr/lib64/slurm /usr/lib/slurm; do [ ! -d "$d" ] || echo "$d"; done | head -n 1)
chmod 755 "$work" # slurmd may run as another user
cluster_up site --nodes=1 --conf="PluginDir=$work/other:$slurm_plugins:$work/plugins" --conf="Prolog=$work/dl-prolog" --conf=PrologFlags=Alloc \
    --conf="HealthCheckProgram=$work/dl-health" --conf=HealthCheckInterval=2 --conf=SchedulerParameters=nohold_on_prolog_fail,batch_sched_delay=0,sched_min_interval=0,sched_interval=2
fault
idle () { [ "$(sinfo -h -N -o %T | sort -u)" = idle ]; }
timeout 300 srun -n1 --dl=torch true 2>err
like "$(cat err)" "unrecognized option '--dl=torch'" "without the line Slurm has no --dl"
mkdir -p share/plugstack.conf.d
echo "optional $PLUGIN" >share/plugstack.conf.d/dl.conf
echo "include $work/share/plugstack.conf.d/*.conf" >"$plugstack"
is "$(timeout 300 srun -n1 --dl=torch sh -c 'echo $RANK' 2>&1)" 0 "include: --dl exists without a restart"
timeout 300 sbatch -W -n1 --dl=torch -o out --wrap 'srun sh -c "echo \$RANK"' >/dev/null 2>&1
is "$(cat out)" 0 "also in batch jobs"
mv share/plugstack.conf.d/dl.conf .
is "$(timeout 300 srun -n1 echo ran 2>&1)" ran "and without the package's file no command prints anything"

# ---- a plugin line without a path: Slurm searches PluginDir

cp "$PLUGIN" plugins/dl.so
echo "optional dl.so" >"$plugstack"
is "$(timeout 300 srun -n1 --dl=torch sh -c 'echo $RANK' 2>&1)" 0 "optional dl.so: it is found in the last of three PluginDirs"
like "$(dl doctor 2>&1)" "^(ok|change) +$work/plugins/dl\.so: plugin file: |^(ok|change) +/.*: plugin file: owner" "dl doctor looks for it there"
is "$(dl doctor 2>&1 | grep '^broken.*plugin')" "" "and finds it"
mv plugins/dl.so other/dl.so
is "$(timeout 300 srun -n1 --dl=torch sh -c 'echo $RANK' 2>&1)" 0 "or in the first"

# ---- the order of files that a wildcard includes

if other_plugin "$work/container.so" "$srcdir/tests/cluster/hooks/container.c" 2>/dev/null; then
    echo "optional $work/container.so" >share/plugstack.conf.d/pyxis.conf
    echo "optional $PLUGIN" >share/plugstack.conf.d/dl.conf
    echo "include $work/share/plugstack.conf.d/*.conf" >"$plugstack"
    is "$(timeout 300 srun -Q -n1 --dl=torch --container-image=a.sqsh sh -c 'echo $CONTAINER_SAW')" 0 "dl.conf is before pyxis.conf"
else
    skip "dl.conf is before pyxis.conf" "spank.h is elsewhere"
fi
echo "optional $PLUGIN" >"$plugstack"

# ---- the prolog

is "$(timeout 300 srun -Q -n1 echo ran 2>&1)" ran "prolog: a job starts on a good node"
drained () { sinfo -h -N -o %T | grep -q drain; }
fault n1:ecc:0,here:ecc:0
SLURM_JOB_GPUS=0,1 SLURM_JOB_ID=1 sh "$work/dl-prolog"
is "$?" 1 "prolog: bad GPUs of the job"
like "$(cat syslog)" '^dl: check: bad: .*uncorrected ECC errors' "the reason goes to the system's log"
job=$(sbatch --parsable -n1 --requeue -o prolog.out --wrap 'echo ran')
wait_for 300 drained
is $? 0 "prolog: the node drains"
wait_for 300 sh -c "[ \"\$(squeue -h -j $job -o %T)\" = PENDING ]"
is "$(cat prolog.out 2>/dev/null)" "" "the job does not start there"
fault
scontrol update NodeName=n1 State=RESUME
wait_for 300 grep -qs ran prolog.out
is "$(cat prolog.out 2>/dev/null)" ran "it runs once the node is good again"
wait_for 300 idle

# ---- the health check

fault n1:lost:1,here:lost:1
wait_for 300 drained
is $? 0 "health check: the node drains"
like "$(sinfo -h -R -o '%E %N')" '^dl check: GPU number 1: lost.* n1$' "with the reason"
fault
scontrol update NodeName=n1 State=RESUME
wait_for 300 idle

# ---- the page's line for NHC, which checks the exit status

line=$(block check_cmd_status | sed 's/.*|| //')
like "$line" '^check_cmd_status -t [0-9]+ -r 0 dl check --gpus=[0-9]+$' "the page has a line for NHC"
check_cmd_status () { # a stand-in for NHC's function: -t SECONDS -r STATUS COMMAND...
    seconds=$2 wanted=$4
    shift 4
    LD_LIBRARY_PATH=$work/gpus timeout "$seconds" "$@" >nhc.out 2>&1
    [ $? -eq "$wanted" ]
}
eval "$(echo "$line" | sed 's/--gpus=.*/--gpus=2/')"
is $? 0 "nhc: a node with all its GPUs"
eval "$line"
is $? 1 "nhc: one with fewer"
like "$(cat nhc.out)" 'GPUs: [0-9]+ expected \(by --gpus\), but the driver has 2' "nhc: and why"

# ---- pending jobs

printf '#!/bin/sh\n#SBATCH -n1 --dl=torch\ntrue\n' >with.sh
printf '#!/bin/sh\n#SBATCH -n1\ntrue\n' >without.sh
with=$(sbatch --parsable -H with.sh)
sbatch -H without.sh >/dev/null
block 'squeue -h -t PD' >pending.sh
is "$(timeout 300 sh pending.sh)" "$with" "the loop of the page finds the pending job with --dl"
scancel -t PD -u "$(id -un)"

# ---- remove the plugin while a step runs

cp "$PLUGIN" gone.so
echo "optional $work/gone.so dl=$builddir/launcher/dl" >"$plugstack"
beside running srun -n1 --dl=torch --dl-monitor=1 sh -c 'touch began; while [ ! -e removed ]; do sleep 0.1; done; echo $RANK'
wait_for 300 [ -e began ]
: >"$plugstack"
rm gone.so
touch removed
ended running
is "$? $(grep -cx 0 running.out)" "0 1" "a step that runs while the plugin is removed ends normally"
unharmed
done_testing
