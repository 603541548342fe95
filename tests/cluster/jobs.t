#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The batch scripts that dl import makes of jobs (tests/python/imports), on a real Slurm: parameter servers serve for ever,
# and the job ends with its chief, or worker 0.
. "$srcdir/tests/lib.sh"
need_cluster
# who is asked to end has time for it on a busy machine, too
cluster_up jobs --nodes=3 --cpus=4 --conf=KillWait=60 --plugin="$PLUGIN dl=$builddir/launcher/dl"

echo 'import time; time.sleep(100000)' >ps.py
cat >train.py <<'END'
import os
import time

print("worker", os.environ["DL_ROLE_INDEX"], os.environ.get("A"), os.environ["TF_CONFIG"], flush=True)
time.sleep(0 if os.environ["DL_ROLE_INDEX"] == "0" and "chief" not in os.environ["TF_CONFIG"] else 100000)
END
submit () { # submit SCRIPT: its exit status, its output in out
    timeout 300 sbatch -W --output=out "$srcdir/tests/python/imports/$1" >/dev/null 2>&1
}
submit jobs-roles.sh
is $? 0 "the job ends with worker 0, though the parameter servers do not"
like "$(cat out)" '^worker 0 None ..cluster.*"ps": ..[^]]*,[^]]*., "worker": ..[^]]*,[^]]*,[^]]*.' "one cluster of all roles"
[ -s out ] || sed 's/^/# /' out

submit jobs-chief.sh
status=$?
is $status 0 "the job ends with its chief, though workers and parameter servers do not"
[ $status -eq 0 ] || sed 's/^/# /' out
like "$(cat out)" '^..cluster.*"chief": ..[^],]*., "ps": ..[^],]*., "worker": ..[^]]*,[^]]*.' "the components of a hetjob are one cluster"
job=$(scontrol show job -o | sed -n 's/^JobId=[0-9]* HetJobId=\([0-9]*\) .*/\1/p' | tail -1)
is "$(scontrol show job -o "$job" | sed -n 's/.* NumCPUs=\([0-9]*\) NumTasks=\([0-9]*\) .*/\1 \2/p' | tr '\n' ',')" "1 1,1 1,4 2," "each role has the cores that it asks for"
CHIEF=7 submit jobs-chief.sh
is $? 7 "a chief that fails: its status, and none below 128 is tried again"
is "$(grep -c '^.*"type": "chief"' out)" 1 "the chief ran once"
done_testing
