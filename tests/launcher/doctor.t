#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl doctor: healthy sites, and every problem that it can find.
. "$srcdir/tests/lib.sh"
for v in $(env | sed -n 's/^\(SLURM[A-Z_]*\)=.*/\1/p'); do unset "$v"; done

# Make a plugin for a given Slurm release.  doctor only reads the file and never loads it.
plugin () { # plugin FILE NUMBER
    printf '\177ELF\0\0dl.so of slurm-dl, built for Slurm release %s\0' "$2" >"$1"
}

site () { # site: make a healthy site in the folder site/
    rm -rf site config
    mkdir -p site/usr/lib/slurm site/usr/sbin site/usr/bin site/proc/sys/net/ipv4 site/proc/sys/kernel site/proc/77 \
        site/dev site/etc/slurm-dl/nccl.d site/etc/systemd site/run/nvidia-persistenced \
        site/proc/driver/nvidia/gpus/0000:07:00.0 site/sys/class/infiniband/mlx5_0 site/sys/module/nvidia_peermem
    cp -r "$srcdir"/tests/launcher/doctor/etc/slurm site/etc/
    chmod -R u+w site
    sed 's/@RELEASE@/22.05/' "$srcdir/tests/launcher/doctor/config" >config
    cp good.so site/usr/lib/slurm/dl.so
    printf '#!/bin/sh\n' >site/usr/bin/dl
    cp site/usr/bin/dl site/usr/sbin/nhc
    : >site/usr/lib/slurm/mpi_pmix.so
    chmod 755 site/usr/bin/dl site/usr/sbin/nhc
    cp "$srcdir"/etc/nccl/*.conf site/etc/slurm-dl/nccl.d/
    echo "32768	60999" >site/proc/sys/net/ipv4/ip_local_port_range
    echo g1 >site/proc/sys/kernel/hostname
    printf '127.0.0.1 localhost\n10.0.0.1 g1.site g1\n' >site/etc/hosts
    echo 'RemoveIPC=no' >site/etc/systemd/logind.conf
    echo slurmd >site/proc/77/comm
    printf 'Limit                     Soft Limit           Hard Limit           Units\n%s\n%s\n' \
        'Max open files            131072               131072               files' \
        'Max locked memory         unlimited            unlimited            bytes' >site/proc/77/limits
    echo 'tmpfs /dev/shm tmpfs rw,nosuid,nodev,size=33554432k 0 0' >site/proc/mounts
    echo 'NVRM version' >site/proc/driver/nvidia/version
    : >site/dev/nvidia0
    : >site/dev/nvidiactl
    : >site/run/nvidia-persistenced/socket
    chmod -R go-w site
}
doctor () {
    dl doctor --root="$PWD/site" --config=config "$@"
}
plugin good.so 0x160508

# ---- a healthy site
site
out=$(doctor)
is $? 0 "a healthy site"
is "$(echo "$out" | grep -E '^(change|broken)')" "" "needs no change"
like "$out" '^ok +/etc/slurm/plugstack.conf.d/10-dl.conf:1: plugin line: optional$' "an include with a wildcard is followed"
like "$out" '^ok +/usr/lib/slurm/dl.so: plugin release: built for Slurm 22\.05$' "the release is read"
like "$out" '^ok +/etc/slurm/slurm.conf:10: MpiParams: ports=20000-20999$' "with file and line"
like "$out" 'GraceTime: no partition has less' "included files are read"
like "$out" '^hint +cgroup.conf: cgroups: --gpus-per-task' "the trap of ConstrainDevices is reported"
like "$out" '^0 to change, [0-9]+ hints, [0-9]+ ok$' "a sum"
doctor --json | /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(len(d) < 25 or any(f["severity"] not in ("ok", "hint") for f in d))'
is $? 0 "as JSON"

refused 3 "^dl: --root: nowhere: No such file or directory$" "a root that does not exist is not a site" dl doctor --root=nowhere

# ---- one problem at a time
sick () { # sick NAME PATTERN COMMAND: expect one problem after COMMAND in a healthy site
    site
    eval "$3"
    out=$(doctor 2>&1)
    status=$?
    is $status 1 "$1: status"
    like "$(echo "$out" | grep -E '^(change|broken)')" "$2" "$1: told"
    is "$(echo "$out" | grep -cE '^(change|broken)')" "${4:-1}" "$1: and nothing else"
}
S=site/etc/slurm
# shellcheck disable=SC2034 # COMMAND uses it
P=$S/plugstack.conf.d/10-dl.conf
sick "no plugstack.conf" '^broken +/etc/slurm/plugstack.conf: plugstack: No such file.*create it' 'rm $S/plugstack.conf' 2
sick "no line" '^broken +/etc/slurm/plugstack.conf: plugin line: no line loads dl.so: add "optional dl.so"' 'rm $P'
sick "no word before it" '^broken +/etc/slurm/plugstack.conf.d/10-dl.conf:1: plugin line: the word before dl.so is missing: use "optional"$' 'sed -i "s/optional *//" $P'
sick "required" '^change +/etc/slurm/plugstack.conf.d/10-dl.conf:1: plugin line: "required"' 'sed -i s/optional/required/ $P'
sick "another word" "^broken .*'optinal' is not a keyword" 'sed -i s/optional/optinal/ $P'
sick "twice" '^change .*2 lines load dl.so' 'cp $P $S/plugstack.conf.d/11-dl.conf'
sick "no file" '^broken +/etc/slurm/plugstack.conf.d/10-dl.conf:1: plugin file: /usr/lib/slurm/dl.so: No such file' 'rm site/usr/lib/slurm/dl.so'
sick "a file that others may write" '^change +/usr/lib/slurm/dl.so: plugin file: owner [0-9]+, mode 777: anyone who can write' 'chmod 777 site/usr/lib/slurm/dl.so'
sick "a folder that others may write" '^change +/usr/lib: plugin file: owner [0-9]+, mode 775' 'chmod 775 site/usr/lib'
sick "another release" '^broken .*built for Slurm 21\.08, and Slurm 22\.05\.8 does not load it' 'plugin site/usr/lib/slurm/dl.so 0x150800'
sick "a newer Slurm" '^broken .*built for Slurm 22\.05, and Slurm 24\.11\.8 does not load it' 'sed -i s/22.05.8/24.11.8/ config'
sick "another file" '^broken .*not the slurm-dl plugin, or damaged: rebuild and reinstall it' 'echo text >site/usr/lib/slurm/dl.so'
sick "a cut plugin" '^broken .*not the slurm-dl plugin, or damaged' 'head -c 40 good.so >site/usr/lib/slurm/dl.so'
sick "an empty file" '^broken .*not the slurm-dl plugin, or damaged' ': >site/usr/lib/slurm/dl.so'
sick "an argument" '^change .*10-dl.conf:1: plugin arguments: defult=torch: not an argument of dl.so; did you mean default=\?' 'sed -i s/default=off/defult=torch/ $P'
sick "a value" '^change .*default=toch: no such value; did you mean torch\?; ignored$' 'sed -i s/default=off/default=toch/ $P'
sick "roles" '^change .*roles=worker:1: not an argument of dl.so' 'sed -i s/default=off/roles=worker:1/ $P'
sick "a condition" '^change .*when=gpus:true: .gpus:true. is not partition:, .*; ignored; the arguments after it, up to the next when=, apply to no step$' 'sed -i "s/default=off/when=gpus:true default=off/" $P'
sick "what may be a condition" '^change .*wen=gpus:no: not an argument of dl.so; did you mean when=\?; ignored; the arguments after it' 'sed -i "s/default=off/wen=gpus:no default=off/" $P'
sick "a path" '^change .*nccl_dir=etc/slurm: not an absolute path' 'sed -i s,nccl_dir=.*,nccl_dir=etc/slurm, $P'
sick "no command" '^change +/usr/bin/dl: command dl: No such file' 'rm site/usr/bin/dl'
sick "a command that others may write" '^change +/usr/bin/dl: command dl: owner [0-9]+, mode 757: anyone who can write there runs programs as each user: ' 'chmod 757 site/usr/bin/dl'
sick "a profile that others may write" '^change +/etc/slurm-dl/nccl.d/tcp.conf: profiles: owner [0-9]+, mode 666: anyone who can write there sets variables of each user: ' 'chmod 666 site/etc/slurm-dl/nccl.d/tcp.conf'
sick "a profile that is no file" '^change +/etc/slurm-dl/nccl.d/tcp.conf: profiles: Invalid argument: make it a file of at most 16 KiB' 'rm site/etc/slurm-dl/nccl.d/tcp.conf; mkfifo -m 644 site/etc/slurm-dl/nccl.d/tcp.conf'
sick "a profile" '^change +profiles: /etc/slurm-dl/nccl.d/tcp.conf:1: NCCL_P2P_DISABLE: for debugging only' 'echo NCCL_P2P_DISABLE=1 >site/etc/slurm-dl/nccl.d/tcp.conf'
sick "order" '^change +/etc/slurm/plugstack.conf.d/05-pyxis.conf:1: plugin order: spank_pyxis.so is before dl.so' 'mv $S/plugstack.conf.d/50-pyxis.conf $S/plugstack.conf.d/05-pyxis.conf'
sick "no ports" '^change +/etc/slurm/slurm.conf: MpiParams: Slurm reserves no ports' 'sed -i /MpiParams/d config $S/slurm.conf'
sick "no range" '^broken +/etc/slurm/slurm.conf:10: MpiParams: foo has no ports=LOW-HIGH' 'sed -i "s/^\(MpiParams *=\).*/\1 foo/" config'
sick "the kernel's ports" '^change .*ports=40000-40999 overlaps 32768-60999, from which programs get random ports .*ports=20000-20999$' 'sed -i "s/ports=.*/ports=40000-40999/" config'
sick "a wide range of the kernel's" '^change .*use others, such as ports=61000-61999$' 'echo "1024 60999" >site/proc/sys/net/ipv4/ip_local_port_range'
sick "no affinity" '^change .*TaskPlugin: task/affinity is missing' 'sed -i "s|,task/affinity||" config'
sick "no task plugin" '^change +/etc/slurm/slurm.conf:14: TaskPlugin: task/cgroup is missing' 'sed -i "s|task/cgroup,task/affinity|task/none|" config'
sick "proctrack" '^change +/etc/slurm/slurm.conf:11: ProctrackType: ' 'sed -i s,proctrack/cgroup,proctrack/linuxproc, config'
sick "devices" '^change +/etc/slurm/cgroup.conf:3: cgroups: a job can use the GPUs of others: set ConstrainDevices=yes' 'sed -i s/Devices=yes/Devices=no/ $S/cgroup.conf'
sick "no cgroup.conf" '^change +cgroup.conf: cgroups: a job can use the memory' 'rm $S/cgroup.conf' 3
sick "linear" '^change .*need SelectType=select/cons_tres' 'sed -i s,select/cons_tres,select/linear, config'
sick "no GresTypes" '^change +/etc/slurm/slurm.conf:4: gres: Slurm cannot allocate GPUs' 'sed -i "s/^\(GresTypes *=\).*/\1 (null)/" config'
sick "no GresTypes, and GPUs in the first line only" '^change +/etc/slurm/slurm.conf:5: gres: Slurm cannot allocate GPUs' \
    'sed -i "s/^\(GresTypes *=\).*/\1 (null)/" config; rm site/etc/slurm/gres.conf; sed -i "s/Gres=gpu:8//" site/etc/slurm/partitions.conf; sed -i "1iNodeName=x Gres=gpu:1" site/etc/slurm/slurm.conf'
sick "cores of GPUs" '^change +/etc/slurm/gres.conf:2: gres: Slurm does not know which cores' 'printf "#\nName=gpu File=/dev/nvidia[0-7]\n" >$S/gres.conf'
sick "GPU hours" '^change .*set AccountingStorageTRES=gres/gpu' 'sed -i "s|,gres/gpu||" config'
sick "KillWait" '^change +/etc/slurm/slurm.conf:9: KillWait: 5 s from' 'sed -i "s/^\(KillWait *=\).*/\1 5 sec/" config'
sick "GraceTime" '^change +/etc/slurm/partitions.conf:5: GraceTime: 0 s is too short' 's=GraceTime; sed -i s/$s=60/$s=0/ $S/partitions.conf'
sick "JobRequeue" '^change .*set JobRequeue=1' 'sed -i "s/^\(JobRequeue *=\).*/\1 0/" config'
sick "UnkillableStepTimeout" '^change .*UnkillableStepTimeout=120 or more' 'sed -i "s/^\(Unk.*=\).*/\1 60 sec/" config'
sick "five times MessageTimeout" '^change .*UnkillableStepTimeout=500 or more' 'sed -i "s/^\(MessageTimeout *=\).*/\1 100 sec/" config'
sick "limits" '^change .*set PropagateResourceLimitsExcept=MEMLOCK' 'sed -i /LimitsExcept/d config'
sick "device files" '^change +/dev/nvidia\*: GPUs: only 0 of 1 GPUs have a device file' 'rm site/dev/nvidia0'
sick "locked memory" '^change +slurmd \(/proc/77/limits\): locked memory: 64 KiB is too little for RDMA: set LimitMEMLOCK=infinity' 'sed -i "s/memory  *unlimited/memory 65536/" site/proc/77/limits'
sick "open files" '^change .*open files: 1024 is low' 'sed -i s/131072/1024/g site/proc/77/limits'
sick "shared memory" '^change +/dev/shm: shared memory: 0\.1 GiB' 'sed -i s/size=.*k/size=65536k/ site/proc/mounts'
sick "a loopback name" '^change +/etc/hosts:2: host names: g1 is 127\.0\.1\.1, so' 'sed -i "s/^10.*/127.0.1.1 g1.site g1/" site/etc/hosts'
sick "AutoDetect of one node" '^change +gres.conf: gres: g2 has GPUs in slurm.conf but no line here' 'echo "NodeName=g1 AutoDetect=nvml" >$S/gres.conf'
sick "too few files" '^change +gres.conf: gres: g1 has 8 GPUs in slurm.conf but 3 files here' 'echo "Name=gpu File=/dev/nvidia[0-2] Cores=0-15" >$S/gres.conf'
sick "a container for each job" '^change .*values: job_container/tmpfs needs PrologFlags=Contain' 'echo "JobContainerType = job_container/tmpfs" >>config; sed -i /PrologFlags/d config' 1
sick "GPUs without a file" '^change +/etc/slurm/gres.conf:1: gres: no File=, so Slurm allocates no device' 'echo "Name=gpu Count=8 Cores=0-15" >$S/gres.conf'
sick "no node with GPUs" '^change +/etc/slurm/partitions.conf:3: gres: no node has GPUs' 's=Gres=gpu:8; sed -i s/$s// $S/partitions.conf'
sick "a range with slurmd's port" '^change .*MpiParams: ports=6000-6999 includes SlurmdPort=6818' 'sed -i "s/ports=.*/ports=6000-6999/" config; echo "SlurmctldPort = 7000" >>config'
sick "srun's ports are the steps'" '^change +/etc/slurm/slurm.conf: SrunPortRange: 20500-21500 overlaps the ports of MpiParams' 'sed -i "s/^\(SrunPortRange *=\).*/\1 20500-21500/" config'
sick "a part of the memory" '^change +/etc/slurm/cgroup.conf:4: cgroups: a job is killed before it uses all memory it requested' 'echo AllowedRAMSpace=50 >>$S/cgroup.conf'
sick "no memory" '^change .*CR_CORE does not allocate memory, so ConstrainRAMSpace does not limit it' 'echo "SelectTypeParameters = CR_CORE" >>config'
sick "hyperthreads" '^change .*SelectTypeParameters: two jobs can get the hyperthreads' 'echo "SelectTypeParameters = CR_CPU_MEMORY" >>config'
sick "suspended jobs" '^change +/etc/slurm/partitions.conf:2: values: PreemptMode: a suspended job keeps its GPU memory' 'sed -i "s/^\(PreemptMode *=\).*/\1 GANG,SUSPEND/" config'
sick "no grace" '^change +/etc/slurm/partitions.conf:5: GraceTime: 0 s is too short' 's=GraceTime=60; sed -i s/$s// $S/partitions.conf'
sick "no authentication" '^change .*anyone can impersonate any user' 'echo "AuthType = auth/none" >>config'
sick "a short MessageTimeout" '^change .*values: 1 s are short for a busy controller' 'sed -i "s/^\(MessageTimeout *=\).*/\1 1 sec/" config'
sick "few tasks" '^change .*values: 8 tasks on a node are few' 'echo "MaxTasksPerNode = 8" >>config'
sick "no program" '^change .*values: TaskProlog=/etc/slurm/prolog: no such program' 'echo "TaskProlog = /etc/slurm/prolog" >>config'
sick "no such MPI" '^change .*values: pmix_v9: no such plugin' 'sed -i "s/^\(MpiDefault *=\).*/\1 pmix_v9/" config'

# ---- changes that are not problems
well () { # well NAME COMMAND: expect no problem after COMMAND in a healthy site
    site
    eval "$2"
    is "$(doctor 2>&1 | grep -E '^(change|broken)')" "" "$1: nothing to change"
}
well "several PluginDirs" 'mkdir -p site/opt/x; sed -i "s|^\(PluginDir *=\).*|\1 /opt/x:/usr/lib/slurm|" config'
well "GPUs in several lines" 'printf "Name=gpu File=/dev/nvidia%s Cores=0-15\n" 0 1,2 "[3-7]" >$S/gres.conf'
well "GPUs by name and file" 'echo "NodeName=g[1-8] Name=gpu File=/dev/nvidia[0-7] Cores=0-127" >$S/gres.conf'
well "no preemption in a partition" 's=GraceTime=60; sed -i s/$s/PreemptMode=OFF/ $S/partitions.conf'
well "a range of srun's own" 'sed -i "s/^\(SrunPortRange *=\).*/\1 60001-63000/" config'
well "a copy without a folder" 'rm -r site/usr/sbin'

# ---- hints do not change the exit status
hint () { # hint NAME PATTERN COMMAND: expect this hint after COMMAND in a healthy site
    site
    eval "$3"
    out=$(doctor 2>&1)
    is $? 0 "$1: status"
    like "$out" "^hint .*$2" "$1: told"
}
hint "jobs that are cancelled" 'values: PreemptMode: Slurm does not requeue preempted jobs' 'sed -i "s/^\(PreemptMode *=\).*/\1 CANCEL/" config'
hint "a /tmp of each job" 'values: each job has its own /tmp and /dev/shm' 'echo "JobContainerType = job_container/tmpfs" >>config'
hint "srun's ports" 'SrunPortRange: srun and --dl-check listen on any port' :
hint "few ports" '40 ports: a step takes one more' 'sed -i "s/ports=.*/ports=20000-20039/" config'
hint "no profiles" 'no profile' 'rm -r site/etc/slurm-dl'
hint "peermem" 'modprobe nvidia_peermem' 'rm -r site/sys/module'
hint "persistence" 'enable nvidia-persistenced' 'rm site/run/nvidia-persistenced/socket'
hint "RemoveIPC" 'set RemoveIPC=no' ': >site/etc/systemd/logind.conf'
hint "PrologFlags" 'pam_slurm_adopt' 'sed -i /PrologFlags/d config'
hint "HealthCheckProgram" 'HealthCheckProgram: a node' 'sed -i /HealthCheckProgram/d config'
hint "arrays" 'MaxArraySize: 100: dl run' 'sed -i "s/^\(MaxArraySize *=\).*/\1 100/" config'
hint "configless" 'this host is configless' 'mkdir -p site/var/spool/slurmd; mv $S site/var/spool/slurmd/conf-cache; sed -i "s,plugstack.conf.d,/x,; s,/etc/slurm/,/var/spool/slurmd/conf-cache/," config; echo "include plugstack.conf.d/*" >site/var/spool/slurmd/conf-cache/plugstack.conf'

# ---- in a step
site
sed -i 's/^\(KillWait *=\).*/\1 7 sec/' config
for r in 0 1; do SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=$r SLURMD_NODENAME=n$r doctor >out.$r; done
is "$(cat out.1)" "n1: change  /etc/slurm/slurm.conf:9: KillWait: 7 s from SIGTERM to SIGKILL is too short for a checkpoint: set KillWait=30 or more" "in a step each node is named, and prints only what to change"
is "$(grep -c '^n0: change' out.0) $(grep -c '^n0: ok' out.0) $(grep -c '^n0: hint' out.0)" "1 0 $(doctor | grep -c '^hint')" "but rank 0 prints the hints, too"

# ---- many nodes in one report
program srun <<'END'
# run a task for each of n1 to n4; site.nN changes the files of node N
echo "$*" >srun.args
[ ! -e silent ] || exit 1
for n in 1 2 3 4; do
    [ "$n" != 4 ] || sed -i 's/KillWait=60/KillWait=9/' site/etc/slurm/slurm.conf
    [ ! -e "site.n$n" ] || sh "site.n$n"
    [ -e "gone.n$n" ] || SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=$n SLURMD_NODENAME=n$n dl doctor --root="$PWD/site" --config=config --json
done
echo "a line of a prolog's"
END
site
survey () {
    env PATH="$PWD:$PATH" dl doctor "$@" 2>err
}
out=$(survey --nodes=4)
is "$?/$(echo "$out" | grep -vE '^hint|^$')" "0/4 nodes: 0 to change, $(echo "$out" | grep -c ^hint) hints" "healthy nodes"
like "$out" '^hint +all 4 nodes: cgroup.conf: cgroups: --gpus-per-task' "a hint for all nodes is one line"
is "$(cat err)" "a line of a prolog's" "other output of a node is passed on"
like "$(cat srun.args)" '^--nodes=4 --ntasks-per-node=1 --kill-on-bad-exit=0 --mpi=none sh -c .* [^ ]*dl$' "srun starts one task on each node"
SLURM_JOB_ID=1 survey --nodes=4 --partition=ai >/dev/null
like "$(cat srun.args)" '^--nodes=4 --partition=ai .*--overlap' "beside other steps of an allocation"
echo "sed -i s/optional/optinal/ site/etc/slurm/plugstack.conf.d/10-dl.conf" >site.n3
: >gone.n2
out=$(survey --nodelist='n[1-4]')
is $? 1 "nodes with mistakes: status"
like "$out" '^broken +n2: no answer: see what srun printed$' "a node that does not answer is named"
like "$out" "^broken +n3, n4: /etc/slurm/plugstack.conf.d/10-dl.conf:1: plugin line: 'optinal'" "a finding on two nodes is one line"
like "$out" '^3 nodes: 1 to change, ' "counted once"
like "$(cat srun.args)" '^--nodelist=n\[1-4\] --nodes=4 ' "all of the list"
is "$(survey --nodes=4 --json | json '[f["nodes"] for f in d if f["check"] == "plugin line"], end=""')" "[['n1', 'n3', 'n4']]" "as JSON"
is "$(survey --nodes=5 | head -n 1)" "broken  2 of 5 nodes: no answer: see what srun printed" "for a number of nodes"
: >silent
survey --nodes=4 >out
is "$?/$(cat out err)" "1/dl: doctor: no node answered: see what srun printed" "no node answers"
is "$(survey --nodelist='n[1' 2>&1; echo $?; cat err)" "2
dl: doctor: --nodelist=n[1: not a list of hosts as Slurm writes it" "an invalid list"
rm srun silent gone.n2 site.n3

# ---- an old site, with almost everything missing
site
rm $S/plugstack.conf $S/cgroup.conf $S/gres.conf
printf 'SLURM_CONF = /etc/slurm/slurm.conf\nSLURM_VERSION = 20.11.9\nSelectType = select/linear\nTaskPlugin = task/none\nProctrackType = proctrack/pgid\nKillWait = 30 sec\nPropagateResourceLimits = NONE\n' >config
out=$(doctor)
is $? 1 "an old site"
holds "needs many changes" [ "$(echo "$out" | grep -cE '^(change|broken)')" -ge 10 ]
is "$(dl doctor --config=none 2>&1; echo $?)" "dl: doctor: none: No such file or directory
3" "no such file"
: >config
runs 1 "an empty answer from Slurm" doctor

# ---- dl=PATH on a file system that hangs, simulated by a test(1) that hangs
mkdir bin
printf '#!/bin/sh\nexec sleep 1000\n' >bin/test
chmod +x bin/test
site
out=$(PATH=$PWD/bin:$PATH doctor)
like "$out" '^change +/usr/bin/dl: command dl: no answer within 5 s: its file system hangs' "dl=PATH hangs"
is "$(echo "$out" | grep -cE '^(change|broken)')" 1 "and nothing else is printed"
rm bin/test

# ---- munge is down: scontrol prints its advice first, and dl must report the cause
program bin/scontrol <<'END'
echo "scontrol: error: If munged is up, restart with --num-threads=10" >&2
echo 'scontrol: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory' >&2
exit 1
END
why='^broken +scontrol show config: slurm: scontrol: error: Munge encode failed: .*No such file or directory: '
alone () { # alone [VARIABLE=VALUE]...: dl doctor without --config, so that it asks scontrol
    env PATH="$PWD/bin:$PATH" "$@" dl doctor --root="$PWD/site"
}
site
sed -i '1aPluginDir=/usr/lib/slurm' $S/slurm.conf
out=$(alone)
is $? 1 "munge is down: status"
like "$out" "${why}using slurm.conf and Slurm's defaults instead$" "the cause is reported"
is "$(echo "$out" | grep -cE '^(change|broken)')" 1 "and slurm.conf is still read, and is healthy"
like "$out" '^ok +/etc/slurm/slurm.conf:11: MpiParams: ports=20000-20999$' "with its lines"
like "$out" '^ok +/usr/lib/slurm/dl.so: plugin release: built for Slurm 22\.05$' "and the plugin"
sed -i 's/KillWait=60/KillWait = 7/; $aMpiParams=ports=40000-40999' $S/slurm.conf
out=$(alone)
like "$out" '^change +/etc/slurm/slurm.conf:10: KillWait: 7 s from' "what is wrong there is reported"
like "$out" '^change +/etc/slurm/slurm.conf:21: MpiParams: ports=40000-40999 overlaps' "of two lines the last one counts"
sed -i '/KillWait/d; /UnkillableStepTimeout/d' $S/slurm.conf
out=$(alone)
like "$out" '^ok +/etc/slurm/slurm.conf: KillWait: 30 s$' "a missing setting has Slurm's default"
like "$out" '^change +/etc/slurm/slurm.conf: UnkillableStepTimeout: Slurm drains a node if GPU processes take more than 60 s' "which can be wrong"
mv $S/slurm.conf $S/own.conf
like "$(alone SLURM_CONF=/etc/slurm/own.conf)" '^change +/etc/slurm/own.conf:19: MpiParams: ' "SLURM_CONF names the file"
like "$(alone)" "${why}slurm.conf was not checked$" "no file, either"

# ---- a real Slurm
if slurm_is_here && slurm_loads_plugin; then
    # scontrol waits 20 s for a controller, so start this now
    SLURM_CONF=$work/none timeout 300 dl doctor >none.out 2>&1 &
    pid=$!
    cluster_up doctor --nodes=1 --cpus=2 --plugin="$PLUGIN dl=$builddir/launcher/dl"
    out=$(timeout 300 dl doctor --run)
    like "$out" '^ok .*plugin release: built for Slurm' "a real Slurm: the plugin is its release's"
    like "$out" '^change .*/slurm.conf:[0-9]+: KillWait: 5 s' "short timeouts of minicluster are found"
    like "$out" '^ok .*rank 0 has its variables; srun true takes [0-9]+ ms with --dl=off, [0-9]+ ms' "a step is timed"
    echo "optional $PLUGIN default=toch options=dl,dlbind max_bind=3" >"$(dirname "$SLURM_CONF")/plugstack.conf"
    out=$(timeout 300 dl doctor)
    like "$out" '^ok +srun: slurm: [0-9.]+, as the controller$' "the version is found beside what the plugin says"
    like "$out" "^change .*/plugstack.conf:1: plugin arguments: options=dl,dlbind: 'dlbind' is not an option; ignored$" "which is reported"
    like "$out" '^change .*plugin arguments: max_bind=3: --dl-bind takes no number; ignored$' "for each argument"
    is "$(echo "$out" | grep -c 'default=toch')" 1 "once"
    : >"$(dirname "$SLURM_CONF")/plugstack.conf"
    out=$(timeout 300 dl doctor --run)
    is $? 1 "without the line"
    like "$out" '^broken .*no line loads dl.so' "the missing line is found"
    like "$out" '^broken +srun --dl=torch env: a step: exited with status' "so is that no step accepts --dl"
    wait $pid
    is $? 1 "without slurm.conf"
    like "$(cat none.out)" '^broken +scontrol show config: slurm: .+: slurm.conf was not checked' "that is reported"
else
    skip "a real Slurm" "it is not installed, or the plugin has sanitizers"
fi
done_testing
