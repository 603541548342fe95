#!/bin/bash
#SBATCH --job-name=v2
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --dl=torchrun
# jobs.yaml (TrainJob of Kubeflow Trainer v2), by dl import; dl-import(1) has the table of its fields.
# Not taken over:
#   line 73: spec.initializer.dataset.storageUri: download it once, before the job: hf download, aws s3 cp
# Without a meaning on Slurm: apiVersion (68), kind (69), spec.runtimeRef.kind (72), apiVersion (57), kind (58),
#   spec.mlPolicy.numNodes (61), spec.template.spec.replicatedJobs.node.name (65),
#   spec.template.spec.replicatedJobs.node.template.spec.template.spec.containers.node.name (66)

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
