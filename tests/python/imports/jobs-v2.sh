#!/bin/bash
#SBATCH --job-name=v2
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --dl=torchrun
# jobs.yaml (TrainJob of Kubeflow Trainer v2), by dl import; dl-import(1) has the table of its fields.
# Not taken over:
#   line 83: spec.initializer.dataset.storageUri: download it once, before the job: hf download, aws s3 cp
# Without a meaning on Slurm: apiVersion (78), kind (79), spec.runtimeRef.kind (82), apiVersion (67), kind (68),
#   spec.mlPolicy.numNodes (71), spec.template.spec.replicatedJobs.node.name (75),
#   spec.template.spec.replicatedJobs.node.template.spec.template.spec.containers.node.name (76)

export C=1
export PET_NPROC_PER_NODE=2
image=${DL_IMAGE-example/torch:2}  # DL_IMAGE= (nothing): without a container
pyxis=() inside=()
if [ -n "$image" ] && srun --help 2>&1 | grep -q -e --container-image; then
    pyxis=(--container-image="$image")
elif [ -n "$image" ]; then
    inside=(apptainer exec --nv "docker://$image")
fi
srun --kill-on-bad-exit=1 "${pyxis[@]}" "${inside[@]}" torchrun train.py
