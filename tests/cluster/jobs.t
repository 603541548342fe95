#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs that dl import makes of TFJob, PyTorchJob, JAXJob and MPIJob run on a real Slurm and end as they should.
# tests/python/operators has the operators' own examples (kubeflow/training-operator release-1.9, kubeflow/mpi-operator, Apache
# License 2.0); a script stands in for the programs of their images.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_slurm
need_package yaml
preload_sanitizers && skip_all "sanitizers"
try_cluster jobs --nodes=3 --cpus=4 --gpus=2 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"
unset DL_FREEZE

ended () { # ended NAME: print its true conditions, and the number of attempts
    dl show --json "$1" | python3 -c 'import json, sys
s = json.load(sys.stdin)
print(*(c["type"] + ":" + c["reason"] for c in s["conditions"] if c["status"] and c["type"] != "Created"), s["trials"][0]["attempts"] if s["trials"] else 0)'
}

# the program of every image: print the framework's variables; servers, and workers next to a chief, never exit
cat >image.py <<'END'
import json
import os
import sys
import time

e = os.environ
cluster = json.loads(e.get("TF_CONFIG", "{}"))
if cluster:
    task = cluster["task"]
    what = f"{task['type']} {task['index']} of " + " ".join(f"{r}:{len(h)}" for r, h in sorted(cluster["cluster"].items()))
elif "NUM_PROCESSES" in e:
    what = f"process {e['PROCESS_ID']} of {e['NUM_PROCESSES']}, {'COORDINATOR_ADDRESS' in e}"
elif e.get("SLURM_MPI_TYPE"):
    what = f"rank {e['SLURM_PROCID']} of {e['SLURM_NTASKS']} by {e['SLURM_MPI_TYPE']}"
else:
    what = f"rank {e.get('RANK')} of {e.get('WORLD_SIZE')}, {'MASTER_ADDR' in e}"
gpus = e.get("CUDA_VISIBLE_DEVICES", "")
print(f"it is {what} with {len(gpus.split(',')) if gpus else 0} GPU {' '.join(sys.argv[1:])}".strip(), flush=True)
if cluster and (cluster["task"]["type"] == "ps" or "chief" in cluster["cluster"] and cluster["task"]["type"] == "worker"):
    time.sleep(100000)
END
cat >stand_in.py <<'END'
import re
import sys

text = "".join(line for line in sys.stdin if not line.startswith(("container = ", "    image = ")))
text = re.sub(r"/\.singularity\.d/runscript|/home/mpiuser/pi|python3? -c import[^\"]*|python3? [\w/.-]+\.py", "python3 image.py", text)
print(text, end="")
END
run_import () { # run_import FILE: import it, and run it with image.py as its program
    timeout 60 dl import --output=- "$1" 2>"$1.said" | python3 stand_in.py >"${1%.yaml}.conf"
    timeout 300 dl job --set worker.grace=2 --set worker.heartbeat=1 "${1%.yaml}.conf" >"$1.out" 2>&1
}
example () { # example FILE NAME CONDITIONS LINES [UNCONVERTED]: run it; check how it ends, its output, and what dl import leaves out
    cp "$here/operators/$1.yaml" .
    run_import "$1.yaml"
    is "$? $(ended "$2")" "0 $3" "$1: its end"
    is "$(cat "$2"-000?/trials/0001/a.1/log | grep '^it is' | sort)" "$4" "$1: its members"
    is "$(grep -v 'RANK and WORLD_SIZE count\|runscript starts\|fields converted\|options of mpirun\|elasticPolicy\|nodes, as many as are free' "$1.yaml.said" | grep -v "^dl: dl run --dry-run")" "${5:-}" "$1: what is not converted"
    case $(cat "$2"-000?/trials/0001/a.1/log) in *"it is "*) ;; *) sed 's/^/# /' "$1.yaml.out" "$2"-000?/trials/0001/a.?/log ;; esac
}
example tf-dist-mnist dist-mnist-for-e2e-test "Succeeded:ChiefSucceeded 1" "it is chief 0 of chief:1 ps:1 worker:2 with 0 GPU
it is ps 0 of chief:1 ps:1 worker:2 with 0 GPU
it is worker 0 of chief:1 ps:1 worker:2 with 0 GPU
it is worker 1 of chief:1 ps:1 worker:2 with 0 GPU"
example tf-simple tfjob-simple "Succeeded:ChiefSucceeded 1" "it is worker 0 of worker:2 with 0 GPU
it is worker 1 of worker:2 with 0 GPU"
example tf-multi-worker multi-worker "Succeeded:ChiefSucceeded 1" "it is worker 0 of worker:2 with 1 GPU
it is worker 1 of worker:2 with 1 GPU" 'dl: tf-multi-worker.yaml:18: spec.tfReplicaSpecs.Worker.template.spec.containers.tensorflow.volumeMounts.training: replace the claim by a folder: container.binds = "/FOLDER:/train"
dl: tf-multi-worker.yaml:24: spec.tfReplicaSpecs.Worker.template.spec.volumes.training: see volumeMounts'
example torch-simple pytorch-simple "Succeeded:ChiefSucceeded 1" "it is rank 0 of 2, True with 0 GPU --epochs=1
it is rank 1 of 2, True with 0 GPU --epochs=1"
# each rank sees both GPUs, and torch uses that of LOCAL_RANK
example torch-nccl pytorch-dist-mnist-nccl "Succeeded:ChiefSucceeded 1" "it is rank 0 of 2, True with 2 GPU --backend nccl
it is rank 1 of 2, True with 2 GPU --backend nccl"
example jax-demo jaxjob-simple "Succeeded:AllWorkersSucceeded 1" "it is process 0 of 2, True with 0 GPU
it is process 1 of 2, True with 0 GPU"
example mpi1-mnist tensorflow-mnist "Succeeded:AllWorkersSucceeded 1" "it is rank 0 of 2 by pmix with 0 GPU
it is rank 1 of 2 by pmix with 0 GPU"
example mpi2-pi pi "Succeeded:AllWorkersSucceeded 1" "it is rank 0 of 2 by pmix with 0 GPU
it is rank 1 of 2 by pmix with 0 GPU"
example mpi2-benchmarks tensorflow-benchmarks "Succeeded:AllWorkersSucceeded 1" "it is rank 0 of 2 by pmix with 1 GPU --model=resnet101 --batch_size=64 --variable_update=horovod
it is rank 1 of 2 by pmix with 1 GPU --model=resnet101 --batch_size=64 --variable_update=horovod"
is "$(dl ls --all | grep -c '^pi-0001')" 1 "ttlSecondsAfterFinished: the job of the example is there"

# ---- a typical TFJob: GPUs for the workers only, servers that never exit, policies by role
cat >f4.yaml <<'END'
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: f4}
spec:
  successPolicy: ""
  runPolicy: {cleanPodPolicy: All, backoffLimit: 3, ttlSecondsAfterFinished: 100, schedulingPolicy: {minAvailable: 4}}
  tfReplicaSpecs:
    Chief: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: [{name: tensorflow, command: [python3, image.py]}]}}}
    PS: {replicas: 1, restartPolicy: Always, template: {spec: {containers: [{name: tensorflow, command: [python3, image.py]}]}}}
    Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: tensorflow, command: [python3, image.py], resources: {limits: {nvidia.com/gpu: 1}}}]}}}
END
run_import f4.yaml
is "$? $(ended f4)" "0 Succeeded:ChiefSucceeded 1" "a TFJob ends with its chief"
is "$(grep '^it is' f4-0001/trials/0001/a.1/log | sort)" "it is chief 0 of chief:1 ps:1 worker:2 with 0 GPU
it is ps 0 of chief:1 ps:1 worker:2 with 0 GPU
it is worker 0 of chief:1 ps:1 worker:2 with 1 GPU
it is worker 1 of chief:1 ps:1 worker:2 with 1 GPU" "only its workers have GPUs"
is "$(cat f4.yaml.said)" "dl: standard output: 16 fields converted, 0 not, 5 without a meaning on Slurm" "each of its policies is converted"

# ---- restartPolicy by role, backoffLimit, activeDeadlineSeconds
job () { # job NAME KIND ROLE POLICY COMMAND [RUNPOLICY]: run it, and print how it ended
    printf 'apiVersion: kubeflow.org/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n  runPolicy: {%s}\n  %s:\n    %s: {restartPolicy: %s, template: {spec: {containers: [{name: a, command: [sh, -c, "%s"]}]}}}\n' \
        "$2" "$1" "${6:-}" "$(case $2 in TFJob) echo tfReplicaSpecs ;; *) echo pytorchReplicaSpecs ;; esac)" "$3" "$4" "$5" >"$1.yaml"
    run_import "$1.yaml"
    echo "$? $(ended "$1")"
}
is "$(job never TFJob Worker Never 'exit 3')" "1 Failed:RoleFailed 1" "Never"
is "$(job failure PyTorchJob Master OnFailure 'test $DL_ATTEMPT = 2')" "0 Succeeded:TrainingCompleted 2" "OnFailure"
is "$(job code TFJob Chief ExitCode 'test $DL_ATTEMPT = 2 && exit 1; exit 137')" "1 Failed:RoleFailed 2" "ExitCode: 137 restarts, 1 does not"
is "$(job limit PyTorchJob Master OnFailure 'exit $DL_ATTEMPT' 'backoffLimit: 1')" "1 Failed:BackoffLimitExceeded 2" "backoffLimit"
is "$(job late PyTorchJob Master OnFailure 'sleep 600' 'activeDeadlineSeconds: 2')" "1 Failed:DeadlineExceeded 1" "activeDeadlineSeconds"
is "$(job waits PyTorchJob Master OnFailure true 'suspend: true')" "0 Suspended:ExperimentPaused 0" "suspend"

# ---- a launcher that starts the ranks itself, in the slots of its workers
cat >launch.yaml <<'END'
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: launch}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: launcher, command: [sh, -c, "echo $DL_ROLE 1; mpirun -np 4 --allow-run-as-root sh -c 'echo it is $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE'"]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: worker, resources: {limits: {cpu: 2}}}]}}}
END
if command -v mpirun >/dev/null; then
    run_import launch.yaml
    is "$? $(ended launch)" "0 Succeeded:ChiefSucceeded 1" "mpirun in the launcher"
    is "$(grep '^it is' launch-0001/trials/0001/a.1/log | sort | tr '\n' ' ')" "it is 0 of 4 it is 1 of 4 it is 2 of 4 it is 3 of 4 " "starts all ranks"
    sed 's/^/# /' launch-0001/trials/0001/a.?/log
else
    skip "mpirun in the launcher" "no mpirun"
fi
unharmed
done_testing
