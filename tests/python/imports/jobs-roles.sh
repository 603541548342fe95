#!/bin/bash
#SBATCH --job-name=roles
#SBATCH --ntasks=5
#SBATCH --dl=tf
#SBATCH --dl-roles=ps:2,worker:3
#SBATCH --no-requeue
# jobs.yaml (TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job), by dl import; dl-import(1) has the table of its fields.
# Without a meaning on Slurm: apiVersion (29), kind (30),
#   spec.tfReplicaSpecs.PS.template.spec.containers.tensorflow.name (34),
#   spec.tfReplicaSpecs.Worker.template.spec.containers.tensorflow.name (35)

train () {
    srun --kill-on-bad-exit=1 bash -c 'run () { trap t=1 TERM; trap : USR1 USR2; "$@" & p=$!; while wait $p; s=$?; kill -0 $p 2>/dev/null; do :; done; [ "$s$t" = 0 ] || [ "$t" ] || [ $SECONDS -ge 10 ] || sleep 10; }; case $DL_ROLE in ps) run python3 ps.py; [ -z "$t" ] || s=0; exit $s;; worker) run python3 train.py; [ "$s$t:$DL_ROLE_INDEX" = 0:0 ] && exit 200; [ -z "$t" ] || s=0; exit $s;; esac'
    status=$?
    [ "$status" -ne 200 ] || status=0  # worker 0 has ended, and so the others were
    return "$status"
}
train
