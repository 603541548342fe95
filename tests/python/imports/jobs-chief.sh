#!/bin/bash
#SBATCH --job-name=chief
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH hetjob
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH hetjob
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=2
# jobs.yaml (TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job), by dl import; dl-import(1) has the table of its fields.
# Other than there:
#   line 43: spec.tfReplicaSpecs.Worker.restartPolicy: all ranks begin again, not one; ExitCode: from status 128 on;
#     Never: --no-requeue
#   line 44: spec.tfReplicaSpecs.PS.restartPolicy: all ranks begin again, not one; ExitCode: from status 128 on;
#     Never: --no-requeue
#   line 45: spec.tfReplicaSpecs.Chief.restartPolicy: all ranks begin again, not one; ExitCode: from status 128 on;
#     Never: --no-requeue
# Without a meaning on Slurm: apiVersion (37), kind (38), spec.runPolicy.cleanPodPolicy (41),
#   spec.tfReplicaSpecs.Worker.template.spec.containers.tensorflow.name (43),
#   spec.tfReplicaSpecs.PS.template.spec.containers.tensorflow.name (44),
#   spec.tfReplicaSpecs.Chief.template.spec.containers.tensorflow.name (45)

train () {
    srun --het-group=0-2 --dl=tf --dl-roles=chief:1,ps:1,worker:2 --kill-on-bad-exit=1 bash -c 'run () { trap t=1 TERM; trap : USR1 USR2; "$@" & p=$!; while wait $p; s=$?; kill -0 $p 2>/dev/null; do :; done; [ "$s$t" = 0 ] || [ "$t" ] || [ $SECONDS -ge 10 ] || sleep 10; }; case $DL_ROLE in chief) cd -- /tmp && run python3 -c '"'"'import os, sys; print(os.environ['"'"'"'"'"'"'"'"'TF_CONFIG'"'"'"'"'"'"'"'"']); sys.exit(int(os.environ.get('"'"'"'"'"'"'"'"'CHIEF'"'"'"'"'"'"'"'"', 0)))'"'"'; [ "$s$t" = 0 ] && exit 200; exit $s;; ps) export A=p; run python3 ps.py; [ -z "$t" ] || s=0; exit $s;; worker) export A=w; run python3 train.py; [ -z "$t" ] || s=0; exit $s;; esac'
    status=$?
    [ "$status" -ne 200 ] || status=0  # the chief has ended, and so the others were
    return "$status"
}
tries=3  # after a failure all ranks begin again
until train; do
    status=$?
    [ "$status" -ge 128 ] || exit "$status"  # restartPolicy ExitCode
    [ $((tries -= 1)) -ge 0 ] || exit "$status"
done
