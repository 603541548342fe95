#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Inspecting or importing another user's files runs nothing that they name.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy yaml
preload_sanitizers && skip_all "sanitizers"
unset DL_DIR DL_FREEZE
mkdir -p evil/conda-meta evil/etc/conda/activate.d
echo "touch $work/ran" >evil/etc/conda/activate.d/x.sh
touch train.py
was_run () { # was_run NAME: check that nothing was run
    ! [ -e ran ]
    ok $? "$1: nothing is run"
    rm -f ran
}

# ---- dl import: environment variables named like settings of dl that load code
import () { # import FILE <TEXT: write the file, import it, and check its variables
    cat >"$1"
    timeout 300 dl import "$1" >out 2>said
    was_run "$1"
    like "$(tr -d ' \n' <"${1%.*}.conf")" 'variables=\{(HYDRA_FULL_ERROR="1";)?conda="/' "$1: becomes a variable"
    like "$(cat "${1%.*}.conf")" 'FOO = "bar";' "$1: like the others"
}
import determined.yaml <<END2
name: x
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 3}
environment: {environment_variables: ["conda=$work/evil", FOO=bar]}
END2
import katib.yaml <<END2
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: k}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 2
  parameters: [{name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.2"}}]
  trialTemplate:
    primaryContainerName: t
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
            - name: t
              command: [python3, train.py, "--lr=\${trialParameters.lr}"]
              env: [{name: conda, value: $work/evil}, {name: FOO, value: bar}]
END2

# options of mpirun whose variable names contain commands
cat >mpi.yaml <<END2
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: m}
spec:
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: t
            command: [mpirun, -x, "A;touch $work/ran;B=1", -mca, "b;touch $work/ran;", c, -genv, "C;touch $work/ran;", d, -x, GOOD=1, ./train]
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: t}]}}
END2
program train <<'END2'
:
END2
timeout 300 dl import mpi.yaml >out 2>said
timeout 100 dl run --local mpi.conf >out 2>&1
was_run "the job of an MPIJob"
is "$(grep ' variables = ' mpi.conf; grep -c 'not a valid name of a variable' said)" '    variables = { SLURM_MPI_TYPE = "pmix"; GOOD = "1"; };
3' "and says so"
echo '@hydra.main(config_path=".")' >main.py
import hydra.yaml <<END2
defaults: [{override hydra/sweeper: basic}]
lr: 0.1
hydra:
  sweeper: {params: {lr: "0.1,0.2"}}
  job: {env_set: {conda: $work/evil, FOO: bar}}
END2

# ---- dl import: files that would take hours or gigabytes, and names that would become settings
mkdir bombs
$python - <<'END2'
one = "name: x\nsearcher: {name: random, metric: loss}\n"
sweep = "method: grid\nprogram: t.py\n"
command = "spec: {trialTemplate: {trialParameters: [{name: a, reference: '${trialSpec.Labels[l]}'}], trialSpec: {apiVersion: batch/v1, kind: Job, "
bombs = {
    "groups": one + "hyperparameters: " + "{a: " * 50 + "1" + "}" * 50,
    "names": sweep + "parameters: {" + ", ".join(f"{chr(0x4e00 + i)}: {{value: 1}}" for i in range(20000)) + "}",
    "values": sweep + "parameters: {x: {values: [" + ",".join(map(str, range(90000))) + "]}}",
    "number": sweep + "parameters: {x: {value: 1" + ":1" * 500000 + "}}",
    "args": sweep + "command: [" + "'${args}'," * 4000 + "]\nparameters: {" + ", ".join(f"x{i}: 1" for i in range(20000)) + "}",
    "word": one + "entrypoint: " + "a" * 300000,
    "flags": one + "entrypoint: python3 -m determined.launch.torch_distributed " + "-a " * 330000,
    "places": one + "entrypoint: '" + "".join("{a%05d}" % i for i in range(50000)) + "'",
    "alias": "a: &a " + "y" * 500000 + "\n" + one + "entrypoint: [" + "*a," * 20000 + "]",
    "key": "seml: {}\nfixed:\n  ? " + "k" * 500000 + "\n  : {" + ", ".join(f"a{i}: 1" for i in range(20000)) + "}",
    "blocks": "seml: {}\n" + "".join(f"b{i}: {{fixed: {{x: 1}}}}\n" for i in range(8000)),
    "grids": "space: {" + ", ".join(f"x{i}: {{grid_search: [1,2]}}" for i in range(8000)) + "}",
    "label": "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\n" + command + "metadata: {labels: {l: " + "z" * 300000
    + "}}, spec: {template: {spec: {containers: [{name: c, command: [c, '" + "${trialParameters.a}" * 20000 + "']}]}}}}}}",
}
for name, text in bombs.items():
    open(f"bombs/{name}.yaml", "w").write(text + "\n")
END2
for file in bombs/*.yaml; do
    (
        # shellcheck disable=SC3045
        ulimit -t 100 -v 2000000
        timeout 1000 dl import -o "$file.conf" "$file" >out 2>said
        status=$?
        [ $status -le 2 ] && ! grep -q '^Traceback' said
    )
    ok $? "$file: neither long nor large"
done
cat >setting.yaml <<END2
name: x
entrypoint: python3 train.py
searcher: {name: single, metric: loss}
hyperparameters: {x: [{'a = 1; } ); }; notify = { command = "touch ran"; }; b = { c = ( { d': 1}]}
END2
timeout 300 dl import setting.yaml >out 2>said
like "$(cat setting.conf)" '"{.a = 1; } ); }; notify = { command = ..touch ran' "a name in a file's list is not a setting"

# ---- dl run --dry-run
cat >exp.conf <<END
name = "x";
entrypoint = "python3 train.py";
searcher = { name = "single"; metric = "loss"; max_length = 1; };
environment = { conda = "$work/evil"; };
END
for where in '' --local; do
    runs 0 "--dry-run $where" dl run --dry-run $where exp.conf
    was_run "--dry-run $where"
done

# ---- an error message in Python about such a file has no control characters
printf 'name = "e"; searcher = { name = "\\x1b[2J\302\233""31m\342\200\256"; };\n' >steer.conf
is "$($python -c '
from slurmdl import program
try:
    program.call("run", "--dry-run", "steer.conf")
except Exception as error:
    print("unknown searcher" in str(error), all(c.isprintable() for line in str(error).split("\n") for c in line))' 2>&1)" \
    "True True" "an error message of Python has no control characters"

# ---- files that would take forever to parse, and pipes without a writer
{ printf 'name: x\nhyperparameters: '; head -c 200000 /dev/zero | tr '\0' '['; } >deep.yaml
{ cat determined.yaml; echo 'a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]'; for i in 1 2 3 4 5 6 7 8; do
    b="*a$((i - 1))"; echo "a$i: &a$i [$b, $b, $b, $b, $b, $b, $b, $b]"; done; } >bomb.yaml
mkfifo pipe.yaml
for what in "deep.yaml nested too deeply" "bomb.yaml more than 20000 settings" "pipe.yaml cannot read"; do
    timeout 100 dl preview "${what%% *}" >out 2>&1
    is "$? $(grep -c "${what#* }" out)" "2 $(grep -c . out)" "dl preview: ${what#* }"
done
for what in "deep.yaml more than 60 levels" "bomb.yaml more than 100000 values" "pipe.yaml not a regular file"; do
    timeout 100 dl import "${what%% *}" >out 2>&1
    is "$? $(grep -c "${what#* }" out)" "2 1" "dl import: ${what#* }"
done

mkfifo pipe.safetensors
timeout 100 dl ckpt import pipe.safetensors pipe.h5 >out 2>&1
is "$(($? < 11)) $(grep -c '^dl: ' out)" "1 1" "dl ckpt import: does not wait for a pipe"

# ---- Python modules in the working directory of dl
mkdir planted
echo "open('$work/ran', 'w')" | tee planted/torch.py planted/json.py >planted/numpy.py
cp train.py determined.yaml planted
for command in "check --full" "run --dry-run ../exp.conf" "import --coverage determined.yaml" "doctor"; do
    (cd planted && timeout 300 dl $command) >out 2>&1
    was_run "dl $command in a folder with torch.py"
done

# ---- slurmdl.det: a checkpoint with metadata that break parsers, and a file that is not bytes
cat >meta.py <<'END'
import numpy
from slurmdl import _slurmdl
from slurmdl.arrays import memory_of
from slurmdl.det import storage

for number, array in enumerate((numpy.frombuffer(b"[" * 100000, "u1").copy(), numpy.zeros(4096))):
    path = "%08d.h5" % number
    memory = memory_of(array)
    file = _slurmdl.Writer(path, number)
    file.add("files/metadata.json", memory.type, memory.shape, memory.where, False)
    file.commit()
    for call in (storage.metadata_of, lambda path: storage.unpack(path, "unpacked")):
        try:
            call(path)
        except _slurmdl.Error as error:
            print(error)
END
$python meta.py >out 2>said
is "$? $(grep -c ': damaged: ' out)" "0 3" "a damaged checkpoint is reported"
like "$($python -c 'import numpy, slurmdl
slurmdl.dump("long.h5", {"n" * 200: numpy.ones(1)})' 2>&1)" "^ValueError: .*at most 127 bytes" "a name that is too long for a checkpoint is not truncated"
done_testing
