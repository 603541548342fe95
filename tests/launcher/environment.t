#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The environment of trials: modules with a stand-in for modulecmd, a real virtual environment, a folder that looks like
# a conda environment, variables.
. "$srcdir/tests/lib.sh"
unset DL_DIR LMOD_CMD MODULES_CMD MODULESHOME CONDA_EXE MAMBA_ROOT_PREFIX VIRTUAL_ENV
HOME=$work/home
mkdir -p home modules bin
MODULEPATH=$work/modules
export HOME MODULEPATH
program bin/modulecmd <<'END'
[ "$1 $2" = "bash load" ] || exit 2
echo "$3" >>"$MODULEPATH/../calls"
[ -e "$MODULEPATH/$3" ] || { printf 'Lmod has detected an error:\033[31m\nThe module "%s" is unknown\n' "$3" >&2; echo false; exit 1; }
cat "$MODULEPATH/$3"
echo "LOADEDMODULES=\${LOADEDMODULES:+\$LOADEDMODULES:}$3; export LOADEDMODULES"
END
echo "PATH=$work/cuda/bin:\$PATH; export PATH; CUDA_HOME=$work/cuda; export CUDA_HOME; WORDS='two
lines'; export WORDS; unset GONE" >modules/cuda
echo 'NEEDS=$CUDA_HOME; export NEEDS; f () { :; }' >modules/nccl
mkdir -p cuda/bin env/conda-meta env/bin env/etc/conda/activate.d home/.conda/envs
printf '#!/bin/sh\necho nvcc\n' >cuda/bin/nvcc
printf '#!/bin/sh\necho conda\n' >env/bin/tool
chmod +x cuda/bin/nvcc env/bin/tool
echo "export HOOK=\$CONDA_PREFIX" >env/etc/conda/activate.d/a.sh
ln -s "$work/env" home/.conda/envs/torch
PATH=$work/bin:$PATH
lr='lr = { type = "float"; minval = 0; maxval = 1; };'
conf () { # conf ENVIRONMENT ENTRYPOINT [HYPERPARAMETERS]
    cat >exp.conf <<END
name = "t";
environment = { $1 };
entrypoint = $2;
metrics = { pattern = "loss = {loss}"; };
searcher = { name = "random"; max_trials = 3; metric = "loss"; };
hyperparameters = { $3 };
resources = { workers = 1; };
END
}

# ---- modules
conf 'modules = ["cuda", "nccl"]; variables = { A = "1"; }; B = "2";' '"nvcc; env >$DL_ATTEMPT_DIR/variables; echo loss = {lr}"' "$lr"
runs 0 "trials with modules" env GONE=1 dl run --local exp.conf
is "$(wc -l <calls)" 4 "loaded once at submission and once in the worker"
is "$(head -n 1 t-0001/trials/0002/a.1/log)" nvcc "PATH"
for v in "CUDA_HOME=$work/cuda" "NEEDS=$work/cuda" "WORDS=two" lines A=1 B=2 LOADEDMODULES=cuda:nccl DL_TRIAL=3; do
    holds "the trial has $v" grep -qxF "$v" t-0001/trials/0003/a.1/variables
done
grep -q '^GONE=' t-0001/trials/0003/a.1/variables
is $? 1 "a variable that a module unsets is unset"
like "$(dl show --provenance)" '^modules: cuda nccl$' "provenance: what was loaded"
like "$(dl show --provenance)" '^environment: modules cuda, nccl$' "provenance: the file's"
case $(dl show --provenance --json) in *'"B"'*) false ;; esac
ok $? "no variables"
timeout 100 dl try exp.conf >out 2>&1
is "$? $(grep -c '^nvcc\|^environment: modules cuda, nccl$' out)" "0 2" "dl try"
like "$(timeout 100 dl run --dry-run exp.conf)" '^environment: modules cuda, nccl$' "--dry-run says it"
timeout 100 dl reproduce >out 2>&1
is "$? $(grep -c '^nvcc\|^reproduced' out)" "0 2" "dl reproduce"
eval "$(dl best | sed -n 's/^to train it again: //p')" >out 2>&1
is "$? $(head -n 1 out)" "0 nvcc" "the command of dl best"
rm modules/nccl
timeout 300 dl continue --local --trials=4 t-0001 >out 2>&1
like "$(cat out)" "environment.modules': cannot load 'nccl'" "a missing module ends the worker, not the trials"
is "$(count t-0001 fail)" 0 "and does not count as a failure"

# ---- conda, venv
for name in '"torch"' "\"$work/env\"" '"./env"'; do
    conf "conda = $name;" '[ "tool" ]'
    like "$(timeout 100 dl try exp.conf 2>&1)" '^conda$' "conda $name: a list finds its program in it"
done
conf 'conda = "torch";' '"echo $HOOK, $CONDA_DEFAULT_ENV; echo loss = 1"'
like "$(timeout 100 dl try exp.conf 2>&1)" "^$work/home/.conda/envs/torch, torch$" "activate.d and the name"
if python3 -m venv --without-pip venv >/dev/null 2>&1; then
    echo 'import sys; print(sys.prefix); print("loss = 1")' >train.py
    conf 'venv = "venv";' '[ "python", "train.py" ]'
    like "$(timeout 100 dl try exp.conf 2>&1)" "^$work/venv$" "a real venv"
    DL_FREEZE=true timeout 300 dl run --local exp.conf >out 2>&1
    is "$? $(cat t-*/trials/0001/a.1/log | grep -c "venv$")" "0 1" "with frozen code"
    like "$(dl show --provenance)" "^python: .*, $work/.*venv/bin/python" "its packages are those of the provenance"
else
    skip "a real venv" "python3 -m venv does not work"
fi

# ---- mistakes
wrong () { # wrong ENVIRONMENT PATTERN NAME
    conf "$1" '"true"'
    refused 2 "^exp.conf:2: $2" "$3" dl run --no-workers exp.conf
}
wrong 'modules = "cudaa";' "'environment.modules': cannot load 'cudaa': Lmod has detected an error: .*31m" "a module that does not exist"
grep -q "$(printf '\033')" out
is $? 1 "no control characters for the terminal"
wrong 'modules = "--help";' "'environment.modules' begins with '-'" "an option for a module"
wrong 'modules = ["cuda", ""];' "'environment.modules' is empty" "empty module"
wrong 'modules = 3;' "'environment.modules' is an integer" "a number"
wrong 'conda = "nothere";' "'environment.conda': there is no conda environment 'nothere'" "no conda environment"
wrong 'conda = "cuda/";' "'environment.conda': there is no conda environment 'cuda/'" "a folder that is none"
wrong 'venv = "cuda";' "'environment.venv': there is no program 'cuda/bin/python'" "no venv"
wrong 'conda = "torch"; venv = "venv";' "'environment.conda' and 'environment.venv' cannot be used together" "two that contradict"
wrong 'variables = { a-b = "1"; };' "'environment.variables.a-b': a variable's name has letters" "an odd name"
wrong 'veenv = "venv";' "unknown key 'environment.veenv'; did you mean 'environment.venv'" "a misspelt key"
wrong 'variables = 3;' "'environment.variables' is an integer" "variables that are no group"
wrong 'variables = { A = 3; };' "'environment.variables.A' is an integer" "a variable that is no text"
wrong 'variables = { A* = "1"; };' "'environment.variables.A\\*': a variable's name has letters" "another"
rm bin/modulecmd
if ! command -v modulecmd >/dev/null; then
    wrong 'modules = "cuda";' "'environment.modules': no module command is here" "no modules"
fi
program lmod <<'END'
echo "export BY=lmod"
END
conf 'modules = "x";' '"echo $BY; echo loss = 1"'
like "$(LMOD_CMD=$work/lmod timeout 100 dl try exp.conf 2>&1)" '^lmod$' "LMOD_CMD"
done_testing
