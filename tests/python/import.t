#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl import: the result for each format, and the messages for invalid files.
# imports/NAME.yaml or .json is the input; NAME.conf beside it is the expected output (DL_TEST_RENEW=1 rewrites it).
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy yaml
preload_sanitizers && skip_all "sanitizers"

# ---- expected output
mkdir gold bad
cp "$here"/imports/*.yaml "$here"/imports/*.json gold
touch gold/train.py gold/ps.py
echo '@hydra.main(config_path=".")' >gold/main.py
echo 'zzz: 1' >gold/zzz.yaml
mkdir -p conda/torch/conda-meta conda/torch/bin
CONDA_ENVS_PATH=$work/conda
export CONDA_ENVS_PATH
(cd gold && timeout 300 dl import . >../out 2>../said)
is $? 0 "a folder with all formats is imported"
is "$(wc -l <out)" "$(find "$here/imports" -name '*.conf' | wc -l)" "standard output lists the files written"
[ -n "${DL_TEST_RENEW:-}" ] && cp gold/*.conf "$here/imports"
for file in "$here"/imports/*.conf; do
    name=${file##*/}
    diff -u "$file" "gold/$name" >"diff" 2>&1
    ok $? "$name"
    sed 's/^/# /' diff
done
# ignore experiments that let Slurm choose the nodes, because checking those needs Slurm
is "$(grep 'dl run --dry-run' said | grep -v 'scontrol')" "" "dl accepts the files"
for line in 'determined.yaml:8: max_slots: unknown field' \
    "katib.yaml:15: spec.earlyStopping.algorithmName: converted, but Katib's medianstop" \
    'jobs.yaml:1: RANK and WORLD_SIZE count processes here' 'zzz.yaml:1: unknown format: --from can be.*; skipped'; do
    holds "said: $line" grep -q "$line" said
done
(cd gold && timeout 300 dl import wandb.yaml 2>&1)
is $? 2 "existing files are not overwritten"
(cd gold && timeout 300 dl import --output=- --entrypoint='python3 my.py --rate {lr}' optuna.json 2>/dev/null) >out
like "$(cat out)" '^entrypoint = "python3 my.py --rate \{lr\}";$' "--entrypoint, --output=-"
(cd gold && timeout 300 dl import --coverage . 2>/dev/null) >out
like "$(cat out)" '^wandb +35 +33 +8 +1 +1 +97%  all 1$' "--coverage"
like "$(timeout 300 dl import --from=nothing gold/wandb.yaml 2>&1)" '^dl: --from=nothing: must be one of determined, katib,' "--from"

# ---- the manual page has the current tables
cp "$srcdir/doc/dl-import.1" page.1
$python -m slurmdl.imports.manual page.1
holds "dl-import(1) has the tables: python3 -m slurmdl.imports.manual doc/dl-import.1 writes them" cmp page.1 "$srcdir/doc/dl-import.1"

# ---- invalid files: dl import prints one line and writes nothing.  Columns: NAME, STATUS, PATTERN of the line, bytes for printf
bomb=$($python -c 'print("a: &a [x,x]" + "".join("\\n%s: &%s [*%s,*%s,*%s,*%s,*%s,*%s]" % (b, b, a, a, a, a, a, a) for a, b in zip("abcdefgh", "bcdefghi")))')
while read -r name status pattern bytes; do
    # shellcheck disable=SC2059
    printf -- "$bytes" >"bad/$name"
    said=$(timeout 60 dl import "bad/$name" 2>&1)
    is $? "$status" "$name: exit status"
    like "$said" "^dl: bad/$name:?$(echo "$pattern" | tr _ ' ')" "$name: message"
    is "$(echo "$said" | wc -l)" 1 "$name: one line of output"
done <<END
bomb.yaml 2 [5-9]:_more_than_100000_values $bomb
cycle.yaml 2 2:_\\*x_contains_itself a: &x\n  b: *x\n
noanchor.yaml 2 1:_\\*x:_no_such_anchor a: *x\n
tab.yaml 2 2:_a_tab a:\n\tb: 1\n
twice.yaml 2 3:_duplicate_key_'a',_first_in_line_1 a: 1\nb: 2\na: 3\n
study.db 2 _a_database:_for_a_study_of_Optuna SQLite format 3\n
latin.yaml 2 2:_not_UTF-8 a: 1\nb: \377\n
empty.yaml 2 1:_empty #\n
documents.yaml 2 3:_a_second_document searcher: {name: single}\n---\na: 1\n
list.yaml 2 1:_expected_a_mapping - 1\n
scalar.json 2 1:_expected_a_mapping 7\n
object.yaml 2 1:_unsupported_tag_.* a: !!python/object/apply:os.system [id]\n
deep.yaml 2 1:_more_than_60_levels $($python -c 'print("a: " + "[" * 5000)')
open.json 2 2:_ {"a": [1\n
odd.yaml 2 1:_unknown_format zzz: 1\n
service.yaml 2 1:_cannot_import_a_Service_of_Kubernetes apiVersion: v1\nkind: Service\n
END
truncate -s 100M bad/large.yaml
mkfifo bad/pipe.yaml
for case in large.yaml:2:'larger than 1 MiB' pipe.yaml:2:'not a regular file' none.yaml:3:'No such file'; do
    name=${case%%:*} rest=${case#*:}
    said=$(timeout 60 dl import "bad/$name" 2>&1)
    is "$? $said" "${rest%%:*} $(echo "$said" | grep "^dl: bad/$name: ${rest#*:}")" "$name"
done
is "$(find bad -name '*.conf')" "" "invalid files: no output is written"
said=$(DL_PYTHON=$work/nopython timeout 60 dl import gold/wandb.yaml 2>&1)
is $? 3 "without Python: exit status"
like "$said" "dl import needs Python" "without Python: message"

# ---- unexpected values: reported or rejected
no_import () { # no_import LINE NAME <FILE: expect an error and no output
    cat >case.yaml
    said=$(timeout 60 dl import -o case.conf --entrypoint='python3 t.py' case.yaml 2>&1)
    is $? 2 "$2: rejected"
    like "$said" "^dl: case.yaml:$1\$" "$2: message"
}
made () { # made PATTERN NAME [LINE] <FILE: expect PATTERN in the output and LINE on stderr
    cat >case.yaml
    timeout 60 dl import -o - --entrypoint='python3 t.py' case.yaml >case.conf 2>said
    is $? 0 "$2"
    like "$(cat case.conf)" "$1" "$2: output"
    [ -z "${3:-}" ] || like "$(cat said)" "$3" "$2: what is said"
}
sweep='program: t.py
method: random
run_cap: 4'
no_import "4: goal: 'maximum' is not one of minimize, maximize" "wandb, a direction" <<END
$sweep
metric: {name: p, goal: maximum}
parameters: {lr: {min: 0.1, max: 0.2}}
END
no_import "5: direction: 'maximum' is not one of minimize, maximize" "Hydra, a direction" <<END
hydra:
  sweeper:
    n_trials: 3
    params: {a: "interval(0.1, 0.2)"}
    direction: maximum
END
no_import "1: direction: 'up' is not one of minimize, .*" "Optuna, a direction" <<END
{"direction": "up", "distributions": {"a": {"name": "FloatDistribution", "attributes": {"low": 0.1, "high": 0.2}}}}
END
no_import "2: mode: 'maximum' is not one of min, max" "Ray, a direction" <<END
param_space: {a: {uniform: [0, 1]}}
tune_config: {metric: p, mode: maximum}
END
no_import "5: type: 'max' is not one of minimize, maximize" "Katib, a direction" <<END
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: k}
spec:
  objective: {type: max, objectiveMetricName: p}
END
for replicas in two -1 1.5 "[1]"; do
    no_import "5: replicas: .* is not a whole number from 0" "replicas: $replicas" <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: k}
spec:
  pytorchReplicaSpecs: {Worker: {replicas: $replicas, template: {spec: {containers: [{name: pytorch, command: [a]}]}}}}
END
done
tf_job () { # tf_job SPEC REPLICA...: a TFJob with these roles in lines 6, 7 and so on
    printf 'apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: k}\nspec:\n  %s\n' "$1"
    shift
    for role in "$@"; do
        printf '    %s, template: {spec: {containers: [{name: tensorflow, command: [t, %s]}]}}}\n' "$role" "${role%%:*}"
    done
}
for policy in 'restartPolicy: Sometimes' 'restartPolicy: [Never]'; do
    tf_job tfReplicaSpecs: "Worker: {$policy" >policy.yaml
    no_import "6: restartPolicy: .* is not one of Always, OnFailure, ExitCode, Never" "$policy" <policy.yaml
done
no_import "4: successPolicy: 'Best' is not one of Default, AllWorkers" "successPolicy: Best" <<END
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: k}
spec: {successPolicy: Best, tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, command: [t]}]}}}}}
END
while read -r pattern policy; do
    tf_job "runPolicy: {$policy}" >policy.yaml
    printf '  tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, command: [t]}]}}}}\n' >>policy.yaml
    no_import "5: ${policy%%: *}: .* is $(echo "$pattern" | tr _ ' ').*" "$policy" <policy.yaml
done <<END
not_one_of cleanPodPolicy: Some
not_a_whole_number_from_0 backoffLimit: -1
not_a_whole_number_from_1 activeDeadlineSeconds: soon
neither_true_nor_false suspend: yes
END
tf_job tfReplicaSpecs: 'Chief: {replicas: 0' 'Worker: {replicas: 2' >case1.yaml
no_import "6: replicas: 0: the Chief decides when a TFJob ends: give it a replica, or remove the role" "no chief: the end would be another" <case1.yaml
tf_job tfReplicaSpecs: 'PS: {replicas: 1' 'Worker: {replicas: 0' >case1.yaml
no_import "7: replicas: 0: the Worker decides when a TFJob ends: .*" "no worker" <case1.yaml
tf_job tfReplicaSpecs: 'Chief: {replicas: 1' 'PS: {replicas: 0' 'Worker: {replicas: 2' >case1.yaml
made 'command = "t Chief"' "a role without replicas" 'PS.replicas: converted, but a role must have members: the job has no PS' <case1.yaml
is "$(grep -c '"t PS"' case.conf)" 0 "a role without replicas: its command does not run"
pods='spec: {containers: [{name: sidecar, command: [ship, logs]}, {name: NAME, command: [python3, main.py]}, {name: other, command: [other]}]}'
for kind in TFJob:tf:tensorflow PyTorchJob:pytorch:pytorch JAXJob:jax:jax PaddleJob:paddle:paddle XGBoostJob:xgb:xgboost MPIJob:mpi:mpi; do
    name=${kind##*:} key=${kind#*:}
    made 'python3 main.py' "${kind%%:*}: the container $name of the pod runs" "Worker.template.spec.containers.sidecar: only the container $name of the pod runs" <<END
apiVersion: kubeflow.org/v1
kind: ${kind%%:*}
metadata: {name: k}
spec:
  ${key%:*}ReplicaSpecs: {Worker: {replicas: 1, template: {$(echo "$pods" | sed "s/NAME/$name/")}}}
END
    is "$(grep -v '^#' case.conf | grep -c 'ship\|other')" 0 "${kind%%:*}: no other one"
done
made 'ship logs' "no container has the operator's name: the first one runs" "containers.*main: only the container sidecar of the pod runs" <<END
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: k}
spec:
  tfReplicaSpecs: {Worker: {template: {$(echo "$pods" | sed "s/NAME/main/")}}}
END
made 'other' "mainContainer comes before the operator's name" "containers.mpi: only the container other" <<END
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: k}
spec:
  mainContainer: other
  mpiReplicaSpecs: {Worker: {replicas: 2, template: {$(echo "$pods" | sed "s/NAME/mpi/")}}}
END
made 'name = "evaluator"; command = "python a.py"; .' "roles in any case, as the operators accept them" <<END
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: k}
spec:
  tfReplicaSpecs:
    worker: {replicas: 2, restartPolicy: ExitCode, template: {spec: {containers: [{name: tensorflow, command: [python, a.py]}]}}}
    EVALUATOR: {restartPolicy: OnFailure, template: {spec: {containers: [{name: tensorflow, command: [python, a.py]}]}}}
END
made 'restart_policy = "never";' "JAXJob, the operator's default policy" <<END
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: k}
spec: {jaxReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: jax, command: [python, a.py]}]}}}}}
END
made 'nodes_per_trial = 3;' "PyTorchJob, a worker that differs from the master" "Worker.restartPolicy: all nodes have the restartPolicy of Master" <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: k}
spec:
  nprocPerNode: "2"
  pytorchReplicaSpecs:
    Master: {restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, command: [python, a.py], env: [{name: A, value: "1"}]}]}}}
    Worker: {replicas: 2, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, command: [python, a.py], workingDir: /x, env: [{name: B, value: "2"}]}]}}}
END
like "$(cat said)" "pytorch.workingDir: all nodes have the workingDir of Master" "its folder is not converted"
like "$(cat said)" "pytorch.env.B.value: all nodes have the variables of Master" "nor its variables"
made 'restart_policy = "never";' "MPIJob, a worker's policy" "Worker.restartPolicy: converted, but that of the launcher applies to all ranks" <<END
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: k}
spec:
  mpiReplicaSpecs:
    Launcher: {restartPolicy: Never, template: {spec: {containers: [{name: mpi, command: [mpirun, -np, "2", ./a]}]}}}
    Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: mpi}]}}}
END
made 'min_available = 1;' "PyTorchJob, elastic" "succeeds when all of its processes have exited with status 0, not when the first one has" <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: k}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2}
  pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, command: [torchrun, a.py]}]}}}}
END
no_import "3: x.NevergradSweeper: unknown sweeper: must be one of .*" "a sweeper" <<END
hydra:
  sweeper:
    _target_: x.NevergradSweeper
    params: {a: "interval(0.1, 0.2)"}
END
made 'name = "annealing";  # not a searcher of dl: choose one' "an algorithm: none is chosen" "case.yaml:2: method: dl has no searcher like .annealing." <<END
program: t.py
method: annealing
run_cap: 4
metric: {name: p, goal: maximize}
parameters: {lr: {min: 0.1, max: 0.2}}
END
like "$(timeout 60 dl run --dry-run case.conf 2>&1)" "case.conf:[0-9]*: .*unknown searcher .annealing.;" "dl run requires a searcher"
made 'a = . type = "loguniform"; min = 0.0001; max = 0.1; .' "wandb, inv_log_uniform_values" <<END
$sweep
metric: {name: p, goal: maximize}
parameters: {a: {distribution: inv_log_uniform_values, min: 0.0001, max: 0.1}}
END
made 'a = . type = "loguniform"; min = 0.01[0-9]*; max = 0.1[0-9]*; .' "wandb, inv_log_uniform" <<END
$sweep
metric: {name: p, goal: maximize}
parameters: {a: {distribution: inv_log_uniform, min: 2, max: 4}}
END
made 'batch = . type = "int"; minval = 32; maxval = 256; base = 10.0; .' "wandb, a batch size" "integers, but not only multiples of q" <<END
$sweep
metric: {name: p, goal: maximize}
parameters: {batch: {distribution: q_log_uniform_values, min: 32, max: 256, q: 8}, b: {distribution: Uniform, min: 1, max: 2}}
END
like "$(cat said)" "parameters.b.*: not a valid range: unknown distribution" "wandb, an unknown distribution"
made 'steps = . type = "int"; minval = 8; maxval = 96; step = 8; .' "wandb, multiples of q" "parameters.o.unit: not used here" <<END
$sweep
metric: {name: p, goal: maximize}
parameters: {steps: {distribution: q_uniform, min: 10, max: 100, q: 8}, o: {min: 1, max: 5, unit: cm}}
END
made 'smaller_is_better = true;' "wandb, no goal; a value that is no number" 'searcher.smaller_is_better = true is a guess: the file has no goal: wandb minimizes' <<END
$sweep
metric: {name: acc}
parameters: {a: {values: [1, .inf]}}
END
like "$(cat said)" 'parameters.a.values: converted, but infinity and NaN become strings' "infinity"
made '^    name = "grid";$' "Katib, a grid's maxTrialCount" 'spec.maxTrialCount: converted, but grid chooses the number itself; dl stop ends it earlier' <<END
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: k}
spec:
  objective: {type: maximize, objectiveMetricName: p}
  algorithm: {algorithmName: grid}
  maxTrialCount: 3
  parameters: [{name: a, parameterType: int, feasibleSpace: {min: "1", max: "9"}}]
END
no_import "6: b.lr is both in fixed and in grid; SEML rejects this, too" "SEML, a duplicate parameter" <<END
seml: {executable: t.py}
slurm: {experiments_per_job: 1}
large:
  fixed: {b.lr: 0.001}
  grid:
    b: {lr: {type: choice, options: [1, 2]}}
END
made 'max_length = 19;' "wandb, min_iter beside max_iter" 'early_terminate.min_iter: converted, but max_iter decides where trials stop' <<END
$sweep
metric: {name: p, goal: minimize}
early_terminate: {type: hyperband, s: 2, min_iter: 7, max_iter: 19}
parameters: {a: {values: [1, 2]}}
END
made '"\^wandb: \+.Average cost. \+' "wandb, a metric name with spaces" <<END
$sweep
metric: {name: Average cost, goal: minimize}
parameters: {a: {values: [1, 2]}}
END
made '^name = "_t_run_1";$' "a name that changes" 'name: converted, but it is called _t_run_1 here' <<END
name: "été / run 1"
$sweep
metric: {name: p, goal: minimize}
parameters: {a: {values: [1, 2]}}
END
made 'partition = "gpu_a,gpu_b";' "SEML, a list of partitions" 'slurm.sbatch_options.exclusive: SEML passes a boolean' <<END
seml: {executable: t.py, name: n_1}
slurm:
  sbatch_options: {partition: [gpu_a, gpu_b], exclusive: true, nodelist: [a, b], requeue: ""}
fixed: {act: "None", none: null, list: [1, a], rate: "1e-3", plain: relu}
grid: {lr: {type: choice, options: [1e-2, 1e-4]}, x: {type: choise, options: [1]}, y: {type: choice, options: ["\${a}", b]}}
END
for pattern in 'act = ".None.";' 'none = "None";' "list = \"\[1, .a.\]\";" "rate = \".1e-3.\";" 'plain = "relu";' 'sbatch_args = ."--requeue".;'; do
    like "$(cat case.conf)" "$pattern" "SEML, the type of a value"
done
for pattern in 'nodelist: a list is not a string' "grid.x.*: unknown type 'choise'" 'grid.y.*: contains an interpolation' 'searcher.smaller_is_better = true is a guess'; do
    like "$(cat said)" "$pattern" "SEML, unsupported fields"
done
made 'a = . type = "int"; minval = 1; maxval = 4; .' "OptunaSweeper, a range with its end" <<END
defaults: [{override /hydra/sweeper: optuna}, {override /hydra/sweeper/sampler: random}]
hydra:
  sweeper:
    direction: minimize
    n_trials: 4
    params: {a: "range(1, 4, step=1)", b: "range(0.1, 0.5, step=0.1)", c: "tag(log, interval(1, 100))", d: "int(interval(1, 9.5))", e: "interval(0, 8)", f: "tag(log, int(interval(1, 64)))"}
END
for pattern in 'b = . type = "float"; minval = 0.1; maxval = 0.5; step = 0.1; .' 'c = . type = "int"; minval = 1; maxval = 100; base = 10.0; .' \
    'd = . type = "int"; minval = 1; maxval = 9; .' 'e = . type = "int"; minval = 0; maxval = 8; .' 'integers, as in OptunaSweeper' 'f = . type = "int"; minval = 1; maxval = 64; base = 10.0; .' '^    name = "random";$'; do
    like "$(cat case.conf)" "$pattern" "OptunaSweeper"
done
made 'a = . type = "int"; minval = 1; maxval = 3; .' "Hydra's own sweeper, a range without its end" 'sweeper.params.c: not a valid range: .* has no interval' <<END
hydra:
  sweeper:
    params: {a: "range(1, 4, step=1)", b: "range(0.1,0.5,0.1)", c: "interval(0, 1)", d: 'choice("a b,c", "1", "x=y", k)', e: "'p','q r'", f: "range(5, 0, -2)"}
END
for pattern in 'b = . type = "float"; minval = 0.1; maxval = 0.4; step = 0.1; .' 'd = . type = "categorical"; vals = ."a.. b..,c", "1", "x..=y", "k".;' \
    'e = . type = "categorical"; vals = ..'"'p'"'", "'"'q r'"'"' 'f = . type = "int"; minval = 1; maxval = 5; step = 2; .'; do
    like "$(cat case.conf)" "$pattern" "Hydra's own sweeper"
done
made '^    experiment_seed = 5;$' "OptunaSweeper, the sampler of the defaults, whose seed is here" <<END
defaults: [{override /hydra/sweeper: optuna}, {override /hydra/sweeper/sampler: cmaes}]
hydra:
  sweeper:
    direction: null
    n_trials: 4
    sampler: {seed: 5}
    params: {a: "interval(0.1, 1)"}
END
like "$(cat case.conf)" '^    name = "cmaes";$' "OptunaSweeper, its name"
like "$(cat said)" 'searcher.smaller_is_better = true is a guess: the file has no direction' "OptunaSweeper, no direction"
made '^    variables = . A = "1"; B = "x y"; .;$' "Determined, variables" <<END
name: a
entrypoint: python3 gone.py
searcher: {name: single, metric: loss}
environment: {environment_variables: [A=1, B=x y]}
END
is "$(grep -c 'environment_variables' said)" 0 "Determined, variables are converted"
made '^    name = "tpe";$' "interpolations" 'sweeper.study_name: .* is a placeholder' <<END
hydra:
  sweeper:
    _target_: hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper
    direction: minimize
    study_name: \${task_name}
    n_trials: \${n}
    sampler: {_target_: optuna.samplers.TPESampler, seed: "\${seed}"}
    params: {a: "interval(0.1, 0.2)", b: "\${c}"}
END
for field in n_trials sampler.seed params.b; do
    like "$(cat said)" "sweeper.$field: " "interpolations: $field"
done
made 'slots_per_trial = 1;' "Katib, a GPU of one role" '1 x 0 .Master., 1 x 1 .Worker. GPUs' <<END
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: k}
spec:
  objective: {type: minimize, objectiveMetricName: p}
  algorithm: {algorithmName: random, algorithmSettings: [{name: random_state, value: "x"}]}
  parameters:
    - {name: a, parameterType: double, feasibleSpace: {min: "1", max: "2", distribution: gauss}}
    - {name: b, parameterType: int, feasibleSpace: {min: "1", max: "9", step: "1.5"}}
    - {name: c, parameterType: double, feasibleSpace: {min: "1", max: "2"}}
    - {name: c, parameterType: double, feasibleSpace: {min: "3", max: "4"}}
  trialTemplate:
    primaryContainerName: pytorch
    trialParameters: [{name: c, reference: c}]
    trialSpec:
      apiVersion: kubeflow.org/v1
      kind: PyTorchJob
      spec:
        pytorchReplicaSpecs:
          Master: {template: {spec: {containers: [{name: pytorch, command: [python3, t.py, "--c=\${trialParameters.c}", "\${trialParameters.d}"], resources: {limits: {nvidia.com/gpu: 0}}}]}}}
          Worker: {replicas: 1, template: {spec: {containers: [{name: pytorch, command: [python3, t.py, "--c=\${trialParameters.c}", "\${trialParameters.d}"], resources: {limits: {nvidia.com/gpu: 1}}}]}}}
END
for pattern in 'random_state: .x. is not a whole number from 0' "parameters.a.*: not a valid range: unknown distribution 'gauss'" 'parameters.b.*: 1.5 is not a step between integers' \
    'parameters.c.*: duplicate name c; the first one counts' 'trialParameters.d. is kept unchanged'; do
    like "$(cat said)" "$pattern" "Katib, unsupported fields"
done
like "$(cat case.conf)" 'ranks_per_node = 2;' "Katib, two ranks"

# booleans as flags, in a sweep that runs
cat >flags.py <<'END'
import argparse
parser = argparse.ArgumentParser()
for name in ("aug", "amp", "debug"):
    parser.add_argument("--" + name, action="store_true")
given = parser.parse_args()
print("GOT", given.aug, given.amp, given.debug)
print("wandb: loss 1")
END
cat >flags.yaml <<'END'
program: flags.py
method: grid
metric: {name: loss, goal: minimize}
command: ["${env}", "${interpreter}", "${program}", "${args_no_boolean_flags}"]
parameters: {aug: {values: [true, false]}, amp: {value: true}, debug: {value: false}}
END
mkdir -p bin && ln -sf "$(command -v python3)" bin/python
timeout 60 dl import flags.yaml >/dev/null 2>&1
runs 0 "flags: the sweep runs" env "PATH=$work/bin:$PATH" dl run --local flags.conf
is "$(cat flags-0001/trials/*/a.1/log | grep GOT | sort -u | tr '\n' ' ')" "GOT False True False GOT True True False " "flags: --amp or nothing"

# a script that reads only wandb.config gets its values from the file that wandb.init() reads as YAML 1.1
cat >config.py <<'END'
import os
import yaml
with open(os.environ["WANDB_SWEEP_PARAM_PATH"]) as f:
    config = {name: value["value"] for name, value in yaml.safe_load(f).items()}  # like wandb.config
print("GOT", sorted(config.items()), type(config["lr"]))
print("wandb: loss 1")
END
cat >config.yaml <<'END'
program: config.py
method: grid
metric: {name: loss, goal: minimize}
command: ["${interpreter}", "${program}", "${envvar:NO_SUCH}x"]
parameters:
  lr: {values: [0.00001]}
  flag: {value: true}
  none: {value: null}
  "a b": {value: "it's \"x\""}
  deep: {parameters: {x: {values: [1, 2]}, y: {value: [1, 2.5]}}}
END
timeout 60 dl import config.yaml >/dev/null 2>said
like "$(cat said)" 'command: converted, but the command has no ..args.: the program gets its parameters only from wandb.config' "wandb.config: reported"
runs 0 "wandb.config: the sweep runs" env "PATH=$work/bin:$PATH" dl run --local config.conf
is "$(cat config-0001/trials/*/a.1/log | grep -c "^GOT \[('a b', 'it\\\\'s \"x\"'), ('deep', {'x': [12], 'y': \[1, 2.5\]}), ('flag', True), ('lr', 1e-05), ('none', None)\] <class 'float'>$")" 2 \
    "wandb.config: what wandb.init() reads"

# ---- random values: each changes the output or is reported
is "$(timeout 500 "$python" "$here/imported.py" "$here/imports" 1 2>said)" "" "unusual values: no silent default"
like "$(cat said)" '^[1-9][0-9][0-9]+ values' "unusual values: some were tried"
mkdir scalars
is "$(timeout 300 "$python" "$here/scalars.py" scalars "${DL_TEST_SEED:-1}" 2>said)" "" "scalars: native and imported files give the same values and lines"
like "$(cat said)" '^700 scalars, [1-9]' "scalars: some were tried"

# ---- a hostile file: dl runs nothing in it, and passes all its words on unchanged
cat >hostile.yaml <<'END'
apiVersion: batch/v1
kind: Job
metadata: {name: "x\n#SBATCH --uid=0\ntouch pwned1"}
spec:
  template:
    spec:
      containers:
        - name: "a\ntouch pwned2"
          image: "$(touch pwned3)`touch pwned4`'"
          workingDir: "."
          command: [python3, "a'b; touch pwned5", "$(NO$(touch pwned6))", "`touch pwned7`", "\e[31m", "é'\\ \u202e$(NO)"]
          env: [{name: "E; touch pwned8", value: x}, {name: V, value: "'; touch pwned9; '$(touch pwned10)"}]
          "lev\nel\ntouch pwned11": 1
END
mkdir -p bin
program bin/python3 <<END
printf '%s\\n' "\$@" "\$V" >"$work/arrived"
END
timeout 60 dl import -o hostile.conf hostile.yaml >out 2>said
sed -i '/^container/d' hostile.conf
runs 0 "a hostile file: its job runs" env "PATH=$work/bin:$PATH" dl job --local hostile.conf
rm bin/python3
is "$(find . -name 'pwned*')" "" "a hostile file: no command runs"
is "$(cat arrived)" "$(printf "a'b; touch pwned5\n\$(NO\$(touch pwned6))\n\`touch pwned7\`\n\033[31m\né'\134 \342\200\256\n'; touch pwned9; '\$(touch pwned10)")" \
    "a hostile file: its words arrive unchanged"
is "$(LC_ALL=C grep -c "$(printf '\033\|\342\200\256')" said hostile.conf | xargs)" "said:0 hostile.conf:0" "a hostile file: no control characters reach the terminal"
cat >hostile2.yaml <<'END'
program: "train.py\"; touch = \"pwned12"
method: grid
metric: {name: loss}
parameters: {"a b; touch pwned13": {values: ["$(touch pwned14)", "'`touch pwned15`"]}, x: {value: "{y} [z"}}
command: [sh, words.sh, "${args}"]
END
printf 'printf "%%s\\n" "$@" >>"$DL_ATTEMPT_DIR/words"; echo "wandb: loss 1"\n' >words.sh
timeout 60 dl import -o hostile2.conf hostile2.yaml >/dev/null 2>&1
runs 0 "a hostile sweep runs" dl run --local hostile2.conf
is "$(find . -name 'pwned*')" "" "a hostile sweep: no command runs"
is "$(cat hostile2-0001/trials/*/a.1/words | sort -u | grep -c -e '--x={y} \[z' -e '^--a b; touch pwned13=')" 3 "a hostile sweep: arguments arrive unchanged"

# ---- Katib: an unmodified script, with metrics from its output and from its file
cat >train.py <<'END'
import sys
values = dict(a[2:].split("=", 1) for a in sys.argv[1:])
with open(values["log"], "w") as f:
    for epoch in range(3):
        print(f"val-loss: {float(values['lr']) + 1 / (epoch + 1):.4f}\naccuracy: 0.5", file=f)
END
sed 's/bayesianoptimization/random/; /earlyStopping/,/algorithmSettings/d; s/maxTrialCount: 12/maxTrialCount: 3/; s/goal: 0.001//; /nvidia/d; s/"{brace}"/"--b={brace}"/
    /side/d; /image:/d; /volume/d; s/, KEY.*//' gold/katib.yaml >katib.yaml
sed -i '/earlyStopping/d; /medianstop/d; /start_step/d' katib.yaml
timeout 60 dl import katib.yaml >out 2>said
is "$? $(cat out)" "0 katib.conf" "Katib's file"
timeout 300 dl run --local --set 'resources.memory=""' katib.conf >out 2>&1
status=$?
is $status 0 "Katib's script runs"
[ $status -eq 0 ] || tail -5 out | sed 's/^/# /'
like "$(dl show --csv median-stop 2>/dev/null | sed 1d)" "0\.[34]" "Katib's script: its metrics are read"

# ---- Determined: an unmodified tutorial of the Core API
cp "$here/det_tutorial.py" tutorial.py
cat >tutorial.yaml <<'END'
name: core-api-tutorial
entrypoint: python3 tutorial.py
hyperparameters:
  increment_by: {type: int, minval: 1, maxval: 8}
searcher: {name: adaptive_asha, metric: x, smaller_is_better: false, max_trials: 4, time_metric: batches, max_time: 16}
environment:
  environment_variables: [GREETING=hello there]
resources: {slots_per_trial: 0}
max_restarts: 0
END
timeout 60 dl import tutorial.yaml >out 2>said
is "$? $(cat out)" "0 tutorial.conf" "Determined's tutorial"
like "$(cat tutorial.conf)" '^entrypoint = "python3 -m slurmdl.det tutorial.py";$' "its script imports determined"
PATH=/usr/bin:$PATH timeout 300 dl run --local tutorial.conf >out 2>&1
status=$?
is $status 0 "Determined's tutorial runs"
[ $status -eq 0 ] || tail -5 out | sed 's/^/# /'
like "$(cat out)" '^best x [0-9]+: trial [1-4] at ' "Determined's tutorial: the searcher has its metric"
is "$(cat core-api-tutorial-0001/trials/*/a.1/log | grep -c 'hello there')" 4 "Determined's tutorial: its variables"
printf 'entrypoint: python3 -u sub/gone.py\nsearcher: {name: single}\n' >gone.yaml
timeout 60 dl import -o - gone.yaml >out 2>/dev/null
like "$(cat out)" 'sub/gone.py was not found: if it imports determined, run python3 -m slurmdl.det' "a script that does not exist"
done_testing
