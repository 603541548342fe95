#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line of each container runtime, from stand-ins that print it, and trials in a real Charliecloud container
# if Charliecloud is installed.
. "$srcdir/tests/lib.sh"
unset DL_DIR CUDA_VISIBLE_DEVICES SLURM_PROCID
mkdir fakes image code data
: >model.sif
: >model.sqsh
printf '#!/bin/sh\n[ "$1" = rm ] && { echo "$*" >>"%s/removed"; exit; }\n[ -z "$WAIT" ] || { echo "$*" >"$WAIT"; exec sleep 300; }\n%s\n' \
    "$work" 'printf "%s" "${0##*/}"; printf " <%s>" "$@" | sed "s/dl-[0-9]*-[0-9]*>/NAME>/"; echo " | $A ${LD_PRELOAD-none} ${NVIDIA_VISIBLE_DEVICES-none}"' >fakes/enroot
chmod +x fakes/enroot
for name in apptainer singularity ch-run podman; do
    cp fakes/enroot fakes/$name
done
dl=$(command -v dl)

within () { # within JSON [NAME=VALUE...]: print how dl starts the runtime
    json=$1
    shift
    (cd code && env -i PATH="$work/fakes:/usr/bin:/bin" A=1 DL_TRIAL=3 HOME=/h LD_PRELOAD= LD_LIBRARY_PATH=/nowhere "$@" \
        DL_SOFTWARE="$json" "$dl" within -- sh -c 'echo "$A"' 2>&1) | sed "s|$work|W|g"
}
f='"folders":["'$work'/exp","'$work'/exp/code","'$work'/data"],"binds":["/a","/b:/c:ro"],"options":["-x","y"]'
mkdir exp exp/code
command="<sh> <-c> <echo \"\$A\">"
names='<--env> <A> <--env> <DL_TRIAL> <--env> <DL_SOFTWARE>'

# ---- each runtime
is "$(within '{"image":"'"$work"'/model.sqsh","runtime":"enroot",'"$f}")" \
    "enroot <start> <--mount> <W/code:W/code:x-create=auto,rbind> <--mount> <W/exp:W/exp:x-create=auto,rbind> <--mount> <W/data:W/data:x-create=auto,rbind> <--mount> </dev/shm:/dev/shm:x-create=auto,rbind> <--mount> </a:/a:x-create=auto,rbind> <--mount> </b:/c:ro> $names <-x> <y> <W/model.sqsh> </bin/sh> <-c> <cd \"\$1\" && shift && exec \"\$@\"> <sh> <W/code> $command | 1 none none" "enroot"
for name in apptainer singularity; do
    is "$(within '{"image":"../model.sif","runtime":"'$name'",'"$f}")" \
        "$name <exec> <--pwd> <W/code> <--bind> <W/code:W/code> <--bind> <W/exp:W/exp> <--bind> <W/data:W/data> <--bind> </dev/shm:/dev/shm> <--bind> </a:/a> <--bind> </b:/c:ro> <-x> <y> <W/model.sif> $command | 1 none none" "$name"
done
case $work in # Charliecloud always shares /tmp
/tmp/*) shared= ;;
*) shared=" <--bind> <W/code:W/code> <--bind> <W/exp:W/exp> <--bind> <W/data:W/data>" ;;
esac
is "$(within '{"image":"'"$work"'/image","runtime":"charliecloud",'"$f}")" \
    "ch-run <--cd> <W/code>$shared <--bind> </a:/a> <--bind> </b:/c:ro> <--unset-env> <PATH> <--unset-env> <LD_LIBRARY_PATH> <--unset-env> <LD_PRELOAD> <--unset-env> <PYTHONHOME> <--unset-env> <PYTHONPATH> <-x> <y> <W/image> <--> $command | 1 none none" "charliecloud"
like "$(within '{"image":"'"$work"'/image","runtime":"podman",'"$f}")" \
    '^podman <run> <--rm> <--network=host> <--ulimit=host> <--cgroups=disabled> <--security-opt=label=disable> <--log-driver=none> <--entrypoint=> <--workdir> <W/code> <--volume> <W/code:W/code> <--volume> <W/exp:W/exp> <--volume> <W/data:W/data> <--volume> </dev/shm:/dev/shm> <--volume> </a:/a> <--volume> </b:/c:ro> <--env> <A> <--env> <DL_TRIAL> <--env> <DL_SOFTWARE> <-x> <y> <--name> <NAME> <--rootfs> <W/image> </bin/sh> <-c> <trap .*> <sh> <sh> <-c> <echo "\$A"> \| 1 none none$' "podman"

# ---- GPUs, references, sockets
like "$(within '{"image":"'"$work"'/model.sqsh"}' CUDA_VISIBLE_DEVICES=0)" '^enroot .*<--env> <NVIDIA_VISIBLE_DEVICES>.* all$' "enroot's hook for GPUs"
like "$(within '{"image":"'"$work"'/model.sif"}' CUDA_VISIBLE_DEVICES=GPU-1)" '^apptainer <exec> <--nv> ' "apptainer's GPUs; it is the first that accepts the image"
like "$(within '{"image":"a/b:1","runtime":"podman"}' CUDA_VISIBLE_DEVICES=1,0)" '<--device=nvidia.com/gpu=all>.* <a/b:1> </bin/sh>' "podman's GPUs and reference"
like "$(within '{"image":"a/b:1"}')" '^apptainer .* <docker://a/b:1> <sh>' "apptainer's reference"
mkdir s pmix
like "$(within '{"image":"'"$work"'/model.sif"}' DL_SOCKET="$work/s/s" SLURM_PROCID=0 PMIX_SERVER_TMPDIR="$work/pmix")" \
    '<W/s:W/s> <--bind> <W/pmix:W/pmix>' "sockets of dl log and PMIx"
rm fakes/apptainer
like "$(within '{"image":"'"$work"'/model.sif"}')" '^singularity ' "the next runtime"
rm fakes/*y
like "$(within '{"image":"'"$work"'/model.sif"}')" "^dl: container: none of enroot, apptainer, .* takes the image W/model.sif$" "no runtime"
like "$(within '{"image":"x.sif"}')" "^dl: container: there is no image 'x.sif'$" "no image"
like "$(within '{"image":"'"$work"'/image","folders":["'"$work"'/a:b"]}')" "^(ch-run|podman) " "a missing folder does not matter"
mkdir a:b
like "$(within '{"image":"r","runtime":"podman","folders":["'"$work"'/a:b"]}')" "^dl: container: the folder 'W/a:b' cannot be bound: " "a colon in a folder"
like "$(within '[')" '^dl: DL_SOFTWARE is not a JSON object$' "not JSON"

# ---- SIGKILL of podman; signals to the first process of a container
WAIT=$work/ready PATH=$work/fakes:$PATH DL_SOFTWARE='{"image":"r","runtime":"podman"}' setsid dl within -- true &
pid=$!
wait_for 300 [ -s ready ]
kill -KILL "$pid"
holds "a container whose podman is killed is removed" wait_for 300 grep -qx "rm --force --ignore --time=0 $(grep -o 'dl-[0-9]*-[0-9]*' ready)" removed
printf '#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec unshare -Urpf "$@"\n' >fakes/podman
cat >loop.sh <<'END'
(trap 'echo inner >>passed; exit' TERM; echo >inner; while :; do sleep 0.1; done) &
trap 'echo outer >>passed; wait; exit 7' TERM
echo >outer
while :; do sleep 0.1; done
END
if unshare -Urpf true 2>/dev/null; then
    PATH=$work/fakes:$PATH DL_SOFTWARE='{"image":"r","runtime":"podman"}' sh -c 'dl within -- sh loop.sh; echo $? >status' &
    wait_for 300 sh -c '[ -e inner ] && [ -e outer ]'
    kill -TERM "$(pgrep -f "^/bin/sh -c trap 't=1.*loop.sh" | tail -n 1)"
    wait_for 300 [ -s status ]
    is "$(cat status) $(sort passed | tr '\n' ' ')" "7 inner outer " "SIGTERM reaches all processes of a container, and its status is returned"
else
    skip "SIGTERM in a container" "no user name spaces"
fi

# ---- the experiment file
conf () { # conf CONTAINER MORE
    cat >exp.conf <<END
name = "t";
container = $1;
entrypoint = "sh train.sh {lr}";
metrics = { pattern = "epoch {step}: loss = {loss}"; };
searcher = { name = "random"; max_trials = 2; metric = "loss"; };
hyperparameters = { lr = { type = "float"; minval = 0; maxval = 1; }; };
$2
END
}
wrong () { # wrong CONTAINER MORE PATTERN NAME
    conf "$1" "$2"
    refused 2 "$3" "$4" dl run --dry-run exp.conf
}
: >train.sh
wrong '{ image = "a"; runtime = "docker"; }' '' "^exp.conf:2: 'container.runtime': unknown runtime 'docker'; there are pyxis" "unknown runtime"
wrong '{ image = "a"; runtime = "apptaner"; }' '' "did you mean 'apptainer'\?$" "misspelt runtime"
wrong '{ image = "a"; runtime = "pyxis"; }' '' "^exp.conf:2: 'container.runtime': pyxis starts trials of several ranks" "pyxis without ranks"
wrong '{ runtime = "podman"; }' '' "^exp.conf:2: 'container.image' is missing" "no image named"
wrong '"gone.sif"' '' "^exp.conf:2: 'container': there is no image 'gone.sif' in $work" "image missing"
wrong '"/gone/image"' '' "^exp.conf:2: 'container': there is no image '/gone/image'$" "image missing elsewhere"
wrong '"--privileged"' '' "^exp.conf:2: 'container.image' begins with '-'" "an option for an image"
wrong '""' '' "^exp.conf:2: 'container.image' is empty" "empty image"
wrong '"a b"' '' "^exp.conf:2: 'container.image' has a space" "image with a space"
wrong '3' '' "^exp.conf:2: 'container.image' is an integer" "a number"
wrong '{ image = "a"; binds = "data"; }' '' "^exp.conf:2: 'container.binds': \"data\" must be /SOURCE" "relative bind"
wrong '{ image = "a"; binds = "/data:rel"; }' '' "^exp.conf:2: 'container.binds'" "bind to a relative path"
wrong '{ image = "a"; imag = "b"; }' '' "^exp.conf:2: unknown key 'container.imag'; did you mean 'container.image'" "unknown key"
wrong '"a"' 'environment = { venv = "v"; };' "^exp.conf:7: 'environment.venv' belongs to this machine and cannot be used with 'container'" "a venv and a container"

conf '"r"' ''
dir=$(timeout 100 dl run --no-workers exp.conf)
rm fakes/*
timeout 300 env PATH="$work/fakes" "$dl" worker "$dir" >out 2>&1
is "$? $(count "$dir" begin)" "2 0" "a worker on a node without a runtime ends before a trial begins"
like "$(cat out)" "^dl: container: none of " "and says why"
rm -r "$dir"

# ---- pyxis: a step of several ranks
program fakes/srun <<'END'
[ "$1" = --help ] && { echo "  --container-mounts=SRC:DST"; exit; }
printf ' <%s>' "$@" | tr '\n' ' ' >srun.args
while [ "$1" != /bin/sh ]; do shift; done
exec "$@"
END
conf '{ image = "nvcr.io#a/b:1"; options = "--no-container-mount-home"; }' 'resources = { nodes_per_trial = 2; }; environment = { A = "1"; }; code = { freeze = false; };'
echo 'echo "epoch 1: loss = $1"' >train.sh
dir=$(PATH=$work/fakes:$PATH timeout 100 dl run --no-workers exp.conf)
runs 0 "a worker whose trials are started by pyxis" env "PATH=$work/fakes:$PATH" dl worker "$dir"
like "$(sed "s|$work|W|g" srun.args)" '<--export=ALL> .*<--container-image=nvcr.io#a/b:1> <--container-workdir=W> <--container-mounts=W:W,/dev/shm:/dev/shm[^>]*> <--container-env=A> <--no-container-mount-home> </bin/sh> <-c> <a= p=; .*> <sh> </bin/sh> <-c> <sh train.sh [0-9.e-]*>$' "srun's options"
like "$(dl show "$dir" 2>&1)" '2 completed' "and results"
sh -c "$(awk -v RS='> <' '/^a= p=;/' srun.args)" sh sh -c 'trap "echo saved >rank; exit 3" TERM; echo >up; while :; do sleep 0.1; done' &
pid=$!
wait_for 300 [ -e up ]
kill -USR2 "$pid"
wait "$pid"
is "$? $(cat rank)" "0 saved" "what dl rank does with SIGUSR2, in a container"

rm -rf "$dir"
: >gone.sqsh
conf '{ image = "gone.sqsh"; runtime = "pyxis"; }' 'resources = { nodes_per_trial = 2; }; code = { freeze = false; };'
dir=$(PATH=$work/fakes:$PATH timeout 100 dl run --no-workers exp.conf)
rm gone.sqsh
refused 7 "^dl: cannot start the program: container: there is no image 'gone.sqsh'$" "an image that has been removed" env "PATH=$work/fakes:$PATH" dl worker "$dir"

# ---- a real runtime
user_spaces () {
    command -v ch-run >/dev/null && USER=x ch-run "$1" -- /bin/sh -c 'exit 7' >/dev/null 2>&1
    [ $? -eq 7 ]
}
mkdir -p image/bin image/dev image/proc image/sys image/tmp image/etc image/home image/run image/mnt image/usr/bin "image$work"
for file in passwd group hosts resolv.conf; do
    : >image/etc/$file
done
for program in /bin/sh /bin/cat /bin/sleep /usr/bin/env; do
    cp -L $program image/bin/
    ldd $program | grep -o '/[^ ]*' | while read -r lib; do
        mkdir -p "image${lib%/*}"
        cp -Ln "$lib" "image$lib"
    done
done
if ! user_spaces "$work/image"; then
    skip "trials in a container" "Charliecloud is not installed, or no user name spaces"
    done_testing
fi
rm -rf fakes t-0001
cat >train.sh <<'END'
pwd >"$DL_ATTEMPT_DIR/where"
env >"$DL_ATTEMPT_DIR/variables"
[ -e /bin/grep ] && exit 9
[ -n "$STATUS" ] && exit "$STATUS"
trap 'echo saved >"$DL_ATTEMPT_DIR/saved"; exit 0' TERM
while [ -e "$HOLD" ]; do sleep 0.1; done
echo "epoch 1: loss = $1"
END
conf '{ image = "image"; runtime = "charliecloud"; }' 'environment = { A = "1"; variables = { B = "two words"; }; }; code = { freeze = true; exclude = ["image"]; }; max_restarts = 0;'
export RANK=5 SLURM_JOB_NAME=n CUDA_VISIBLE_DEVICES=
runs 0 "trials in a real container" env DL_FREEZE=true dl run --local exp.conf
like "$(dl show 2>&1)" '2 completed' "metrics by lines of output"
like "$(cat t-0001/trials/0001/a.1/where)" "/t-0001/code/" "the working folder is that of the frozen code"
for v in A=1 'B=two words' RANK=5 SLURM_JOB_NAME=n CUDA_VISIBLE_DEVICES= DL_TRIAL=1 DL_LENGTH=1; do
    holds "the container has $v" grep -qxF "$v" t-0001/trials/0001/a.1/variables
done
like "$(dl show --provenance)" "^container: found charliecloud; |^container: .*path $work/image.*runtime charliecloud" "provenance"
timeout 300 dl reproduce >out 2>&1
is "$? $(grep -c '^reproduced' out)" "0 1" "dl reproduce in the container"
touch -d @1000000000 image
like "$(timeout 300 dl reproduce --dry-run 2>&1)" "the image image has changed since" "a changed image is reported"
eval "$(dl best | sed -n 's/^to train it again: //p')" >out 2>&1
is "$? $(grep -c '^epoch 1' out)" "0 1" "the command of dl best"
like "$(timeout 300 dl try exp.conf 2>&1)" '^result: +loss' "dl try"
STATUS=7 timeout 300 dl run --local exp.conf >out 2>&1
like "$(dl failures 2>&1)" 'exit status 7' "the exit status is returned"
export HOLD="$work/hold"
: >hold
conf '"image"' 'resources = { workers = 1; }; worker = { heartbeat = 1; }; code = { freeze = false; };'
timeout 300 dl run --local exp.conf >out 2>&1 &
wait_for 300 sh -c 'grep -qs "^DL_TRIAL" t-0003/trials/0001/a.1/variables'
dl pause t-0003 >/dev/null
wait
is "$(cat t-0003/trials/0001/a.1/saved)" saved "SIGTERM reaches the script"
timeout 300 dl resume --local t-0003 >out 2>&1 &
wait_for 300 sh -c 'grep -qs "^DL_TRIAL" t-0003/trials/0001/a.2/variables'
dl kill t-0003 >/dev/null
wait
is "$(grep -lsF "DL_EXPERIMENT_DIR=$work/t-0003" /proc/[0-9]*/environ | wc -l)" 0 "SIGKILL leaves nothing behind"
done_testing
