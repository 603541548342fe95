#!/bin/bash
#SBATCH --job-name=torch
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --dl=torchrun
#SBATCH --time=61
#SBATCH --hold
# jobs.yaml (TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job), by dl import; dl-import(1) has the table of its fields.
# Not taken over:
#   line 6: spec.runPolicy.schedulingPolicy.queue: sbatch --partition
#   line 13: spec.pytorchReplicaSpecs.Master.template.spec.nodeSelector.gpu: sbatch --constraint, --partition or
#     --gres=gpu:TYPE:N
#   line 22: spec.pytorchReplicaSpecs.Master.template.spec.containers.pytorch.volumeMounts.odd: no hostPath, claim or
#     emptyDir: a job sees the file systems of its node, use a path there
#   line 24: spec.pytorchReplicaSpecs.Master.template.spec.volumes.odd: see volumeMounts
#   line 13: spec.pytorchReplicaSpecs.Worker.template.spec.nodeSelector.gpu: sbatch --constraint, --partition or
#     --gres=gpu:TYPE:N
#   line 22: spec.pytorchReplicaSpecs.Worker.template.spec.containers.pytorch.volumeMounts.odd: no hostPath, claim or
#     emptyDir: a job sees the file systems of its node, use a path there
#   line 24: spec.pytorchReplicaSpecs.Worker.template.spec.volumes.odd: see volumeMounts
# Other than there:
#   line 10: spec.pytorchReplicaSpecs.Master.restartPolicy: all ranks begin again, not one; ExitCode: from status 128
#     on; Never: --no-requeue
#   line 21: spec.pytorchReplicaSpecs.Master.template.spec.containers.pytorch.volumeMounts.runs: the claim is the
#     folder runs-1/a b where sbatch is called: link it to its data
#   line 10: spec.pytorchReplicaSpecs.Worker.restartPolicy: all ranks begin again, not one; ExitCode: from status 128
#     on; Never: --no-requeue
#   line 21: spec.pytorchReplicaSpecs.Worker.template.spec.containers.pytorch.volumeMounts.runs: the claim is the
#     folder runs-1/a b where sbatch is called: link it to its data
#   line 1: RANK and WORLD_SIZE count processes here; a PyTorchJob sets RANK to the pod's number, which is wrong with
#     several processes in a pod
# Without a meaning on Slurm: apiVersion (1), kind (2), spec.runPolicy.cleanPodPolicy (6),
#   spec.pytorchReplicaSpecs.Master.template.spec.containers.pytorch.name (15),
#   spec.pytorchReplicaSpecs.Master.template.spec.containers.pytorch.volumeMounts.shm (22),
#   spec.pytorchReplicaSpecs.Master.template.spec.volumes.data.name (23),
#   spec.pytorchReplicaSpecs.Master.template.spec.volumes.runs.name (23),
#   spec.pytorchReplicaSpecs.Master.template.spec.volumes.shm.name (24),
#   spec.pytorchReplicaSpecs.Master.template.spec.volumes.shm.emptyDir.medium (24),
#   spec.pytorchReplicaSpecs.Worker.template.spec.containers.pytorch.name (15),
#   spec.pytorchReplicaSpecs.Worker.template.spec.containers.pytorch.volumeMounts.shm (22),
#   spec.pytorchReplicaSpecs.Worker.template.spec.volumes.data.name (23),
#   spec.pytorchReplicaSpecs.Worker.template.spec.volumes.runs.name (23),
#   spec.pytorchReplicaSpecs.Worker.template.spec.volumes.shm.name (24),
#   spec.pytorchReplicaSpecs.Worker.template.spec.volumes.shm.emptyDir.medium (24)

export A='b c'
export PET_NPROC_PER_NODE=4
image=${DL_IMAGE-example/torch:1}  # DL_IMAGE= (nothing): without a container
mounts=/ssd/data:/data:ro,$PWD/'runs-1/a b:/runs'
pyxis=() inside=()
if [ -n "$image" ] && srun --help 2>&1 | grep -q -e --container-image; then
    pyxis=(--container-image="$image" --container-mounts="$mounts")
elif [ -n "$image" ]; then
    inside=(apptainer exec --nv --bind "$mounts" "docker://$image")
fi
cd -- '/work dir' || exit
tries=2  # after a failure all ranks begin again
until srun --kill-on-bad-exit=1 "${pyxis[@]}" "${inside[@]}" torchrun train.py 'it'"'"'s '"${HOME}"' `x` {y}'; do
    status=$?
    [ $((tries -= 1)) -ge 0 ] || exit "$status"
done
