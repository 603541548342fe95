#!/bin/bash
#SBATCH --job-name=mpi
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --dl=mpi
# jobs.yaml (TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job), by dl import; dl-import(1) has the table of its fields.
# Other than there:
#   line 62: options of mpirun that srun has no use for: -bind-to none
# Without a meaning on Slurm: apiVersion (52), kind (53),
#   spec.mpiReplicaSpecs.Launcher.template.spec.containers.launcher.name (62),
#   spec.mpiReplicaSpecs.Worker.template.spec.containers.worker.name (65)

export B=1
export OMPI_MCA_btl='^openib'
srun --kill-on-bad-exit=1 --mpi=pmix python3 train.py
