#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs from the frameworks' tutorials under dl job: they train on two nodes, one rank is killed, and they resume from their
# newest checkpoint and complete.  DL_TEST_HOROVOD (with torch and Gloo), DL_TEST_JAX, DL_TEST_LIGHTNING and DL_TEST_TENSORFLOW name
# interpreters with these packages.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_cluster
need_package torch yaml
preload_sanitizers && skip_all "sanitizers"
. "$srcdir/tests/cluster/heal.sh"
try_cluster frameworks --nodes=2 --cpus=8 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"
train="--work $work --resume ckpt.pt"
pattern='metrics.pattern=["step={step} loss={loss}"]'

# ---- PyTorch DDP under salloc: a process for each rank
# shellcheck disable=SC2086
beside ddp env -C code salloc --quiet --nodes=2 --ntasks-per-node=1 dl job --dir="$work" --name=ddp --framework=torch --set "$pattern" -- /usr/bin/python3 healed.py $train

# ---- torchrun in a batch script: one on each node, started by sh -c.  PyTorch 1.13's torchrun fails under Python 3.11
# without PET_REDIRECTS.
cat >code/torchrun.conf <<EOF
name = "torchrun";
entrypoint = "/usr/bin/python3 -m torch.distributed.run --rdzv_backend=c10d --nproc_per_node=1 healed.py $train";
working_folder = "trial";
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { framework = "torchrun"; };
environment = { variables = { PET_REDIRECTS = "1"; PET_TEE = "1"; }; };
job = { };
EOF
printf '#!/bin/sh\nexec dl job --dir="%s" code/torchrun.conf\n' "$work" >batch.sh
batch=$(sbatch --parsable --output=batch.out --nodes=2 --ntasks-per-node=1 batch.sh)

# ---- slurmdl.hvd (Horovod's interface) in a submitted job: broadcast and DistributedOptimizer; rank 0 saves
cat >code/ours.py <<'END'
import os
import sys
import time

import slurmdl.hvd as hvd
import torch

hvd.init()
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
step = 0
if hvd.rank() == 0 and os.path.exists("checkpoint.pt"):
    state = torch.load("checkpoint.pt")
    model.load_state_dict(state["model"])
    step = state["step"]
step = hvd.broadcast_object(step, root_rank=0)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks begin at step {step + 1}", flush=True)
enough = False
while not enough:
    step += 1
    optimizer.zero_grad()
    loss = model(torch.randn(16, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    time.sleep(0.2)
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "step": step}, "checkpoint.tmp")
        os.replace("checkpoint.tmp", "checkpoint.pt")
        print(f"step={step} loss={loss.item()}", flush=True)
    enough = hvd.broadcast_object(os.path.exists(sys.argv[1]), root_rank=0)
END
runs 0 "Horovod's interface: submitted" env -C code dl job --detach --dir="$work" --name=horovod --nodes=2 --set "$pattern" -- /usr/bin/python3 ours.py "$work/enough"

# ---- frameworks that are rarely installed
cat >code/jaxed.py <<'END'
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize()
mesh = Mesh(np.array(jax.devices()), ("data",))
shard, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
step, w = np.load("state.npy") if os.path.exists("state.npy") else (0.0, 5.0)
step = int(step)
descend = jax.jit(lambda w, x: w - 0.01 * jnp.mean(x) * w, out_shardings=everywhere)
ask = jax.jit(jnp.max, out_shardings=everywhere)


def spread(value):
    return jax.make_array_from_process_local_data(shard, np.full(jax.local_device_count(), value, np.float32))


if jax.process_index() == 0:
    print(f"{jax.process_count()} ranks begin at step {step + 1}", flush=True)
enough = False
while not enough:
    step += 1
    w = float(descend(np.float32(w), spread(1.0)))
    time.sleep(0.2)
    if jax.process_index() == 0:
        with open("state.tmp", "wb") as f:
            np.save(f, np.array([step, w]))
        os.replace("state.tmp", "state.npy")
        print(f"step={step} loss={w * w}", flush=True)
    enough = float(ask(spread(float(os.path.exists(sys.argv[1]))))) > 0
END
cat >code/lit.py <<'END'
import os
import sys
import time

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def on_train_start(self):
        if self.trainer.is_global_zero:
            print(f"{self.trainer.world_size} ranks begin at step {self.global_step + 1}", flush=True)

    def training_step(self, batch, _):
        loss = self.layer(batch).pow(2).mean()
        time.sleep(0.2)
        if self.trainer.is_global_zero:
            print(f"step={self.global_step + 1} loss={loss.item()}", flush=True)
        self.trainer.should_stop = self.trainer.strategy.reduce_boolean_decision(os.path.exists(sys.argv[1]), all=False)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, num_nodes=2, strategy="ddp", max_epochs=-1, logger=False, enable_progress_bar=False,
        default_root_dir=".", callbacks=[ModelCheckpoint(dirpath="saved", save_last=True, every_n_train_steps=2)],
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(100000, 8), batch_size=4), ckpt_path="last")
END
is_there () { # is_there NAME VARIABLE PYTHON: whether this Python has the module NAME
    "$3" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))' "$1" 2>/dev/null && return
    skip "$1" "not installed: $2 is a Python that has it"
    return 1
}
own=${DL_TEST_PYTHON:-/usr/bin/python3}
horovod_python=${DL_TEST_HOROVOD:-$own} jax_python=${DL_TEST_JAX:-$own} lightning_python=${DL_TEST_LIGHTNING:-$own} tensorflow_python=${DL_TEST_TENSORFLOW:-$own}
more=
# Horovod itself, by the example in dl-job(1): the same program with its own module
sed 's/slurmdl\.hvd/horovod.torch/' code/ours.py >code/train.py
cat >code/rendezvous.py <<'END'
import os
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

port = int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
RendezvousHTTPServer(("", port), RendezvousHandler, 0).serve_forever()
END
is_there horovod DL_TEST_HOROVOD "$horovod_python" && more="$more gloo" &&
    printf 'name = "gloo";\nentrypoint = ["sh", "-c", "[ $HOROVOD_RANK != 0 ] || %s rendezvous.py & exec %s train.py %s"];\nworking_folder = "trial";\nresources = { nodes_per_trial = 2; framework = "horovod"; };\n' \
        "$horovod_python" "$horovod_python" "$work/enough" >code/gloo.conf &&
    runs 0 "Horovod: submitted" dl job --detach --dir="$work" --set "$pattern" code/gloo.conf
is_there jax DL_TEST_JAX "$jax_python" && more="$more jax" &&
    runs 0 "JAX: submitted" env -C code dl job --detach --dir="$work" --name=jax --nodes=2 --framework=jax --set "$pattern" -- "$jax_python" jaxed.py "$work/enough"
is_there lightning DL_TEST_LIGHTNING "$lightning_python" && more="$more lightning" &&
    runs 0 "Lightning: submitted" env -C code dl job --detach --dir="$work" --name=lightning --nodes=2 --framework=lightning --set "$pattern" -- "$lightning_python" lit.py "$work/enough"
tensorflow=
is_there tensorflow DL_TEST_TENSORFLOW "$tensorflow_python" && tensorflow=1

# ---- kill a rank of each
newest () { # newest RANK: print the pid of its newest Python process, which is the training script
    for p in $(processes python3) $(processes python); do
        cat "/proc/$p/environ" 2>/dev/null | tr '\0' '\n' | grep -qx "SLURM_PROCID=$1" && echo "$(sed 's/.*) //' "/proc/$p/stat" | cut -d' ' -f20) $p"
    done | sort -n | tail -1 | cut -d' ' -f2
}
kill_rank () { kill -9 "$(newest 1)"; }
for name in ddp torchrun horovod $more; do
    begins "$name"
    fault "$name: a rank is killed" kill_rank
done
touch enough
for name in ddp torchrun horovod $more; do
    timeout 300 dl wait "$name" >/dev/null 2>&1
    dl show --json "$name" >shown
    is "$(python3 - <<'END'
import json

s = json.load(open("shown"))
t = s["trials"][0]
print(s["state"], *(c["type"] + ":" + c["reason"] for c in s["conditions"] if c["status"] and c["type"] != "Created"), t["attempts"], t["metric"] is not None)
END
)" "completed Succeeded:TrainingCompleted 2 True" "$name: its end, two attempts, and a metric"
    is "$(causes "$name")" "RankDied " "$name: the cause"
    dl report "$name" >report.out 2>&1 && grep -q 'rank [01] on n[12] \(was killed by signal 9\|ended with\|was the first to fail\)' "$name-0001.html"
    ok $? "$name: dl report has it"
done
ended ddp
is $? 0 "salloc ends with the status of the job"
wait_for 60 sh -c "! squeue -h -j $batch 2>/dev/null | grep -q ."
is "$(scontrol show job "$batch" | grep -o 'JobState=[A-Z]* \|ExitCode=[0-9:]*' | tr -d '\n ')" "JobState=COMPLETEDExitCode=0:0" "so does the batch job"

# ---- an elastic PyTorchJob whose command chooses the rendezvous backend
cat >elastic.yaml <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: elastic}
spec:
  elasticPolicy: {rdzvBackend: c10d, minReplicas: 1, maxReplicas: 2, maxRestarts: 10}
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              env: [{name: PET_REDIRECTS, value: "1"}, {name: PET_TEE, value: "1"}]
              command: [/usr/bin/python3, -m, torch.distributed.run, --rdzv_backend=c10d, $work/code/healed.py, --work, $work, --steps, "3"]
END
rm -f enough
runs 0 "an elastic PyTorchJob is imported" dl import --output=elastic.conf elastic.yaml
runs 0 "it runs to its end" dl job elastic.conf
like "$(cat elastic-0001/trials/0001/a.1/log)" '2 ranks begin at step 1' "on both nodes"

# ---- a program that writes no files
program code/bare.sh <<'END'
[ "$DL_ATTEMPT" = 2 ]
END
runs 0 "a program that leaves no file" env -C code dl job --dir="$work" --name=bare --nodes=2 -- ./bare.sh
like "$(dl show bare)" 'attempt 2: starts without files' "dl show says that it restarted without one"
is "$(for name in ddp torchrun horovod; do dl show $name; done | grep -c 'starts without files')" 0 "and does not say so for the others"

# ---- TensorFlow: MultiWorkerMirroredStrategy, and ParameterServerStrategy with roles
if [ -n "$tensorflow" ]; then
    cp "$srcdir/tests/cluster/mirrored.py" "$srcdir/tests/cluster/servers.py" code
    export TF_CPP_MIN_LOG_LEVEL=2 TF_NUM_INTRAOP_THREADS=1
    runs 0 "MultiWorkerMirroredStrategy" env -C code dl job --dir="$work" --name=mirrored --nodes=2 --framework=tf -- "$tensorflow_python" mirrored.py
    is "$(grep -ho 'worker.*falls True' mirrored-0001/trials/0001/a.1/log | sort)" "worker 0: 2 replicas, loss falls True
worker 1: 2 replicas, loss falls True" "both train together"
    runs 0 "ParameterServerStrategy" env -C code dl job --dir="$work" --name=servers --framework=tf --set 'job.roles=({name="chief";},{name="ps";restart_policy="always";},{name="worker";count=2;})' \
        -- "$tensorflow_python" servers.py
    like "$(cat servers-0001/trials/0001/a.1/log)" 'chief: 2 workers, 1 servers, 60 steps' "its chief trains"
    like "$(dl show servers)" 'Succeeded .* ChiefSucceeded' "and ends the job"

    # a parameter server dies
    sed 's/^import random/import random\nimport time/; s/range(6)/range(100 if os.environ["DL_ATTEMPT"] == "1" else 6)/
        s/^    coordinator.join()/&\n    print(f"step={epoch + 1}", flush=True)\n    time.sleep(0.3)/' "$srcdir/tests/cluster/servers.py" >code/slowly.py
    env -C code dl job --detach --dir="$work" --name=slowly --framework=tf --set "$pattern" --set 'job.roles=({name="chief";},{name="ps";restart_policy="always";},{name="worker";count=2;})' \
        -- "$tensorflow_python" slowly.py >out 2>&1
    begins slowly
    wait_for 300 trains
    kill_rank
    timeout 400 dl wait slowly >out 2>&1
    is "$? $(causes slowly)" "0 RankDied " "a parameter server is killed: the job begins again, and succeeds"
    like "$(dl show slowly)" 'RankDied: ps 0 on n[12]: exit status 137 \(Killed\)' "the server is named"
    like "$(dl show slowly)" 'Succeeded .* ChiefSucceeded' "because its chief succeeds"
    is "$(processes python3)" "" "and none of its members is left"

    # a worker dies beside an evaluator, which has ended before, and later runs until it is killed
    cat >code/backed.py <<'END'
import json
import os
import time

import numpy as np
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
if task["type"] == "evaluator":
    print("evaluator sees", *sorted(config["cluster"]), len(config["cluster"]["worker"]), flush=True)
    if os.environ["DL_ATTEMPT"] != "1":
        time.sleep(1000)
    raise SystemExit


class Tell(tf.keras.callbacks.Callback):
    first = True

    def on_epoch_begin(self, epoch, logs=None):
        if self.first:
            print(f"worker {task['index']} begins at epoch {epoch + 1}", flush=True)
        self.first = False

    def on_epoch_end(self, epoch, logs=None):
        time.sleep(0.3)
        if task["index"] == 0:
            print(f"step={epoch + 1} loss={logs['loss']}", flush=True)


strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.default_rng(1).standard_normal((256, 8)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).repeat().batch(64)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer=tf.keras.optimizers.SGD(learning_rate=0.01))
model.fit(dataset, epochs=40, steps_per_epoch=2, verbose=0, callbacks=[tf.keras.callbacks.BackupAndRestore("backup"), Tell()])
END
    env -C code dl job --detach --dir="$work" --name=backed --framework=tf --set "$pattern" --set 'job.roles=({name="worker";count=2;},{name="evaluator";})' -- "$tensorflow_python" backed.py >out 2>&1
    begins backed
    goes_on () { grep -q '^step=3 ' "$trial/a.1/log" && [ -e "$trial/a.1/ends/2" ]; }
    wait_for 300 goes_on
    ok $? "an evaluator ends: the job goes on"
    is "$(grep '^evaluator' "$trial/a.1/log")" "evaluator sees worker 2" "it is not part of the cluster"
    had=$(sed -n 's/^step=\([0-9]*\) .*/\1/p' "$trial/a.1/log" | tail -1)
    kill_rank
    timeout 400 dl wait backed >out 2>&1
    is "$? $(causes backed)" "0 RankDied " "a worker is killed: the job begins again, and succeeds"
    first=$(sed -n 's/^worker 0 begins at epoch //p' "$trial/a.2/log")
    [ "${first:-0}" -ge "$had" ]
    ok $? "it has restored the newest state"
    is "$(grep -c '^step=40 ' "$trial/a.2/log")$(grep -c '^evaluator' "$trial/a.2/log")" 11 "all members train or evaluate to the end"
    like "$(dl show backed)" 'Succeeded .* ChiefSucceeded' "the first worker ends the job"
    # shellcheck disable=SC2034 # for processes ()
    attempt=2
    is "$(processes python3)" "" "and the evaluator is killed"
fi
unharmed
done_testing
