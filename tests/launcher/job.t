#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl job --local: failed programs restart as the policies say.  tests/cluster/job.t tests jobs in Slurm.
. "$srcdir/tests/lib.sh"
unset DL_FREEZE

conditions () { # conditions NAME: print the job's conditions that are true
    dl show --json "$1" | json '*(c["type"] + ":" + c["reason"] for c in d["conditions"] if c["status"] and c["type"] != "Created")'
}

attempts () {
    dl show --json "$1" | json 'd["trials"][0]["attempts"]'
}

# ---- a program that knows nothing of dl and continues from its own file
program steps.sh <<'END'
n=$(cat state 2>/dev/null || echo 0)
while [ "$n" -lt 6 ]; do
    n=$((n + 1))
    echo "$n" >state.new && mv state.new state
    echo "step $n"
    [ $((n % 2)) -ne 0 ] || [ "$n" -eq 6 ] || exit 3
done
END
runs 0 "a job whose program fails twice" dl job --local -- ./steps.sh
is "$(cat steps-0001/trials/0001/a.*/log | grep '^step' | tr '\n' ' ')" "step 1 step 2 step 3 step 4 step 5 step 6 " "continues from its own file"
is "$(conditions steps)" "Succeeded:TrainingCompleted" "and has succeeded, without a metric"
is "$(dl show --json steps | json 'd["state"]')" completed "its experiment is completed"
is "$(attempts steps)" 3 "after three attempts"
is "$({ cat out; dl show steps; dl show steps 1; dl ls; } | grep -cE 'loss|nan|metric:')" 0 "nothing names a metric that it does not log"
like "$(cat out)" '^ *[0-9.]+s  trial 1 +succeeded$' "its end is told"
runs 0 "a job that logs a metric" dl job --local --name=logs --set='metrics.pattern="step={step} loss={loss}"' -- sh -c 'echo step=7 loss=0.5; until dl show logs | grep at.7; do sleep 0.1; done; dl show logs 1'
like "$(cat logs-0001/trials/0001/a.1/log)" '(trial 1|now)( at|, at) 7: loss 0.5, ' "its newest step, and no length that nobody gave"
like "$(dl show logs)" ' 0\.5 +0\.5 ' "has its value"

for set in name='"known"' searcher.max_length=5; do
    dl job --local --name=known --set "$set" -- sh -c 'echo "length $DL_LENGTH, known $DL_LENGTH_KNOWN"'
done >out 2>&1
is "$(cat known-000[12]/trials/0001/a.1/log)" "length 1, known 0
length 5, known 1" "a program knows whether the user gave a length"

# ---- a command that names no file of the folder runs in that folder and leaves its files there
echo old >kept.pt
runs 0 "a command without code" dl job --local --name=words -- sh -c 'echo "$1 $2"; test "$1" || { echo 1 >made.pt; exit 3; }' sh '[--resume {resume_dir}/made.pt]' '[--from {resume_dir}/kept.pt]'
is "$(cat words-0001/trials/0001/a.*/log)" " 
--resume $work/made.pt" "continues from the file that it left in the folder, not from an older one"
rm made.pt kept.pt

# ---- the reason is the program's last line, not what Slurm prints about the step
runs 1 "a step that srun ends" dl job --local --name=noise -- sh -c 'echo "ValueError: boom"
    echo "srun: error: n1: task 2: Exited with exit code 5"
    echo "slurmstepd-n1: error: *** STEP 10.$DL_ATTEMPT ON n1 CANCELLED AT 2026-11-28T08:50:28 ***"; echo "slurmstepd: error: x"; exit 5'
like "$(dl show noise)" ' SameCause: exit status 5: ValueError: boom$' "has the reason of its program"
is "$(attempts noise)" 3 "which is the same each time"

# ---- conditions carry UTC times, independent of the reader's time zone
utc_times () { # utc_times ZONE
    TZ=$1 dl show --json noise | python3 -c 'import json, sys
from datetime import datetime, timezone
print(*(datetime.fromtimestamp(c["time"], timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") for c in json.load(sys.stdin)["conditions"]))'
}
is "$(utc_times Asia/Tokyo)" "$(utc_times America/New_York)" "--json has the same times in Tokyo and in New York"
utc=$(utc_times UTC | grep -oE '^[^ ]+:') tokyo=$(TZ=UTC-9 dl show noise | sed -n 's/^ *Created *since \([^ ]* [^ ]*\) .*/\1/p')
is "$(date -u -d "$tokyo +0900" +%Y-%m-%dT%H:%M:)" "$utc" "dl show has local times"

# ---- a program that dies at once
runs 1 "one that dies at once fails" dl job --local --name=dies -- sh -c 'echo no module named x; exit 1'
is "$(conditions dies) $(attempts dies)" "Failed:SameCause 3" "after three attempts that failed alike"
runs 1 "so does one that leaves a new file each time" dl job --local --name=files -- sh -c 'echo x >"f$DL_ATTEMPT"; echo boom; exit 4'
is "$(conditions files) $(attempts files)" "Failed:SameCause 3" "because that is no progress"
is "$(grep -c 'attempt [123] failed: exit status 4: boom' "$(echo files-0001/workers/*.log)")" 3 "its worker prints each failure"

# ---- an attempt that does not count is told, too
runs 0 "a job whose first attempt asks for another one" dl job --local --name=asks -- sh -c 'test "$DL_ATTEMPT" = 2 || exit 75'
like "$(cat out)" 'trial 1 +restarts: ' "prints that it restarts"
runs 0 "a job that logs no metric" dl job --local --name=silent -- true
runs 0 "is reproduced" dl reproduce silent
like "$(cat out)" '^reproduced: it succeeded, and logged no metric, as before$' "by its exit status"

# ---- --dry-run prints what the members do
echo 'print(1)' >dry.py
echo data >data
cat >dry.conf <<'END'
name = "dry";
working_folder = "trial";
resources = { framework = "tf"; };
job = {
    restart_policy = "exit_code";
    backoff_limit = 3;
    roles = (
        { name = "chief";  command = "python3 dry.py"; memory = "2G"; },
        { name = "ps";
          command = "python3 dry.py --ps";
          restart_policy = "always"; },
        { name = "worker"; command = "python3 dry.py"; count = 2; gpus = 1; }
    );
};
END
is "$(dl job --dry-run dry.conf 2>&1 | grep -v '^code:')" "job dry: 4 members, framework tf, in a heterogeneous Slurm job of 3 components
  chief        1 x 1 core, 2G           exit_code   python3 dry.py
  ps           1 x 1 core               always      python3 dry.py --ps
  worker       2 x 1 core, 1 GPU        exit_code   python3 dry.py
succeeds: when chief does; all others are then killed
restarts: all members together, 3 times without progress (job.backoff_limit)
exit codes: 1 to 127 fail, 128 to 255 restart
resumes:  each attempt starts with the files that the previous one left
nothing was started (--dry-run)" "--dry-run of a job with roles"
is "$(dl job --dry-run --nodes=2 --framework=torch --set='job.restart_policy="never"' -- python3 dry.py '[--resume {resume_dir}/last.pt]' 'a b' 2>&1 | grep -v '^code:')" \
    "job dry: 2 processes, framework torch, in a Slurm job
  2 nodes, 1 process a node, 1 core a process; restart_policy never
  python3 dry.py '[--resume {resume_dir}/last.pt]' 'a b'
succeeds: when all processes exit with status 0
restarts: never
resumes:  from {resume_dir}, the folder with the newest such file that an attempt left
nothing was started (--dry-run)" "and of a command"
refused 2 "^dry.conf:10: 'command' of role \"ps\": there is no file 'dyr.py' in $work, where the trials run; did you mean 'dry.py'\?" "the file of a role is missing" \
    dl job --dry-run "$(sed 's/dry.py --ps/dyr.py/' dry.conf >dry2.conf; mv dry2.conf dry.conf; echo dry.conf)"
refused 2 "^dry.conf:10: 'command' of role \"ps\": './data' cannot be run: chmod \+x $work/./data" "a role's is no program" \
    dl job --dry-run "$(sed 's/python3 dyr.py/.\/data/' dry.conf >dry2.conf; mv dry2.conf dry.conf; echo dry.conf)"
refused 2 "^dry.conf:9: 'job.roles': \"ps\" has no 'command', and there is no 'entrypoint'" "a role has none" \
    dl job --dry-run "$(sed 10d dry.conf >dry2.conf; mv dry2.conf dry.conf; echo dry.conf)"

# ---- files, with policies
job () { # job NAME COMMAND [KEY...]: run it, and print its conditions and attempts
    printf 'name = "%s";\nentrypoint = "%s";\nworking_folder = "trial";\njob = { %s };\n' "$1" "$2" "$3" >"$1.conf"
    timeout 300 dl job --local "$1.conf" >"$1.out" 2>&1
    echo "$? $(conditions "$1") $(attempts "$1")"
}
is "$(job never 'exit 7' 'restart_policy = "never";')" "1 Failed:RoleFailed 1" "restart_policy = never"
is "$(job backoff 'echo $DL_ATTEMPT; exit $DL_ATTEMPT' 'backoff_limit = 1;')" "1 Failed:BackoffLimitExceeded 2" "backoff_limit = 1: one more"
is "$(job zero 'exit 1' 'backoff_limit = 0;')" "1 Failed:BackoffLimitExceeded 1" "backoff_limit = 0: none"
is "$(job progress 'echo $DL_ATTEMPT >>file; dl log --step=$DL_ATTEMPT loss=1; test $DL_ATTEMPT = 6 || exit 1' 'backoff_limit = 1;')" \
    "0 Succeeded:TrainingCompleted 6" "attempts that got further do not count"
is "$(job codes 'test $DL_ATTEMPT = 2 || exit 137; exit 3' 'restart_policy = "exit_code";')" "1 Failed:RoleFailed 2" \
    "exit_code: 137 restarts, 3 does not"
is "$(job table 'test $DL_ATTEMPT = 2 || exit 3; exit 137' 'restart_policy = "exit_code"; exit_codes = ("3: restart", "4-255: fail");')" \
    "1 Failed:RoleFailed 2" "the user's own table"
is "$(job late 'sleep 600' 'active_deadline = "0:00:02";')" "1 Failed:DeadlineExceeded 1" "active_deadline"

# ---- a job that starts suspended
printf 'name = "waits";\nentrypoint = "true";\njob = { suspend = true; };\n' >waits.conf
timeout 300 dl job --local waits.conf >out 2>&1
is "$? $(conditions waits)" "0 Suspended:ExperimentPaused" "suspend = true: nothing runs"
like "$(cat out)" "suspended; 'dl resume waits-0001' starts it" "and says so"
timeout 300 dl resume --local waits >out 2>&1
is "$? $(conditions waits) $(attempts waits)" "0 Succeeded:TrainingCompleted 1" "dl resume starts it"

# ---- after the job has finished
printf 'name = "gone";\nentrypoint = "true";\njob = { ttl_after_finished = 0; };\n' >gone.conf
timeout 300 dl job --local gone.conf >out 2>&1
is "$(dl ls | grep -c '^gone')" 0 "ttl_after_finished: dl ls hides it"
is "$(dl ls --all | grep -c 'gone')" 1 "but --all has it"

# ---- bad input: one error line each
bad () { # bad PATTERN NAME ARGUMENT...
    bad_pattern=$1 bad_name=$2
    shift 2
    refused 2 "$bad_pattern" "$bad_name" dl job --dry-run "$@"
}
bad_set () { # bad_set PATTERN NAME SET [OPTION...]
    set_pattern=$1 set_name=$2 set_first=$3
    shift 3
    bad "$set_pattern" "$set_name" --set "$set_first" "$@" -- ./steps.sh
}
bad_set "'count' is 0, but must be from 1" "a role without members" 'job.roles=({name="worker"; count=0;})'
bad_set "a role must have a 'name'" "a role without a name" 'job.roles=({count=2;})'
bad_set "two roles have the name" "a role twice" 'job.roles=({name="a";},{name="a";})'
bad_set "no role is chief" "success by a chief that is not there" 'job.success_policy="chief"'
bad_set "never end" "a job that would never end" 'job.roles=({name="ps";})'
bad_set "never end" "nor would this" 'job.restart_policy="always"'
bad_set "never end" "all workers, of whom one begins again for ever" 'job={success_policy="all_workers"; roles=({name="worker";},{name="other"; restart_policy="always";});}'
bad_set "never end" "the first worker, who does" 'job.roles=({name="worker"; restart_policy="always";},{name="other";})'
runs 0 "but a deadline ends it" dl job --dry-run --set 'job={restart_policy="always"; active_deadline="10";}' -- ./steps.sh
bad_set "there are chief, all_workers, any$" "a policy of another name" 'job.success_policy="everybody"'
bad_set "unknown key 'replicas'; there are name, count, command, " "a key of the operators" 'job.roles=({name="worker"; replicas=2;})'
bad_set "the 'command' of \"worker\" is empty" "an empty command" 'job.roles=({name="worker"; command=" ";})'
bad_set "'job.exit_codes': \"100: restart\" has no effect after \"1-127: fail\", which comes first" "a table that contradicts itself" 'job={restart_policy="exit_code"; exit_codes=("1-127: fail", "100: restart");}'
bad_set "'resources.nodes_per_trial' is 4, but the job has only 3 members" "more nodes than members" 'job.roles=({name="worker"; count=3;})' --nodes=4
bad_set "did you mean 'never'" "a policy that there is not" 'job.restart_policy="nevr"'
bad_set "'143: restart'|\"143: restart\"" "a table of codes" 'job={restart_policy="exit_code"; exit_codes="999: restart";}'
bad_set "a job has one trial" "another searcher" 'searcher.name="random"'
bad_set "job.min_available=.*the job has 1 member$" "more members than there are" 'job.min_available=2'
bad_set "all 3 members of roles start together" "fewer members of roles" 'job={min_available=2; roles=({name="worker"; count=3;});}'
bad_set "leave out 'resources.gpus_per_node'" "GPUs of a role and of a node" 'job.roles=({name="worker"; gpus=1;})' --set resources.gpus_per_node=1
bad_set "must be like \"16G\"" "memory of a role" 'job.roles=({name="worker"; memory="much";})'
bad_set "only with restart_policy" "a table that nobody reads" 'job.exit_codes="3: fail"'
bad_set "nothing is restarted" "policies that contradict each other" 'job={restart_policy="never"; backoff_limit=3;}'
bad_set "must be like \"12:00:00\"" "a deadline" 'job.active_deadline="soon"'
bad_set "'resources.spares' is for a trial of several ranks" "a spare for one process" 'resources.spares=1'
bad_set "needs 'resources.nodes_per_trial' in a job with roles" "a spare for roles on any nodes" 'job.roles=({name="worker";})' --set resources.spares=1
bad_set "'resources.min_nodes' \\(3\\) is more than" "more nodes at least than at all" 'resources={nodes_per_trial=2; min_nodes=3;}'
bad_set "cannot be used together" "fewer nodes for roles" 'job.roles=({name="worker"; count=2;})' --set 'resources={nodes_per_trial=2; min_nodes=1;}'
echo "print (1)" >slp.py
bad "there is no program .slp\.py. in PATH: write \./slp\.py for the file in " "a file of the folder, without its path" -- slp.py
bad "follows the file" "an option behind the file" never.conf --detach
# ---- a host freezes, Slurm requeues its job and starts it elsewhere, and the host thaws: the earlier run ends, and harms nothing
mkdir bin
for command in scontrol sacct squeue scancel; do
    program "bin/$command" <<END
echo "$command \$*" >>"$work/calls"
END
done
echo "echo '77|N/A|RUNNING|None|1:00:00||/tmp'" >>bin/squeue # elsewhere
program bin/srun <<'END'
while case $1 in --*) ;; *) false ;; esac do shift; done
SLURM_PROCID=0 SLURM_STEP_ID=0 exec "$@"
END
cat >twice.conf <<END
name = "twice";
entrypoint = "echo begin; until [ -e $work/go ]; do sleep 0.1; done";
searcher = { name = "single"; };
worker = { heartbeat = 1; lease = 3; grace = 2; };
END
in_job () { # in_job COMMAND...: run dl job in a batch job of one node
    exec env PATH="$work/bin:$PATH" SLURM_JOB_ID=77 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=1 SLURMD_NODENAME=n1 ENVIRONMENT=BATCH \
        SLURM_JOB_END_TIME=$(($(date +%s) + 3600)) "$@" dl job twice.conf
}
(in_job RUN=first) >first.out 2>&1 &
first=$!
wait_for 60 grep -qs begin twice-0001/trials/0001/a.1/log
frozen=$(grep -lsz '^RUN=first$' /proc/[0-9]*/environ | cut -d/ -f3)
# shellcheck disable=SC2086
kill -STOP $frozen 2>/dev/null
(in_job SLURM_RESTART_COUNT=1) >second.out 2>&1 &
second=$!
wait_for 60 grep -qs begin twice-0001/trials/0001/a.2/log
# shellcheck disable=SC2086
kill -CONT $frozen 2>/dev/null
wait "$first"
is "$?" 4 "the earlier run of a requeued job ends"
like "$(cat first.out)" '^dl: Slurm has started the job of this worker again; this worker ends$' "says why"
is "$(grep -c requeue calls)" 0 "and does not requeue the job"
touch go
wait "$second"
is "$? $(conditions twice) $(attempts twice)" "0 Succeeded:TrainingCompleted 2" "the later run succeeds with its first attempt"
done_testing
