#!/bin/bash
#SBATCH --job-name=own
#SBATCH --ntasks=1
# jobs.yaml (TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job), by dl import; dl-import(1) has the table of its fields.
# Without a meaning on Slurm: apiVersion (47), kind (48), spec.template.spec.containers.a.name (50)

image=${DL_IMAGE-example/own:1}  # DL_IMAGE= (nothing): without a container
pyxis=() inside=(./PROGRAM --epochs 2)
[ -z "$image" ] || inside=(apptainer run --nv "docker://$image" --epochs 2)  # its own program
srun "${pyxis[@]}" "${inside[@]}"
