#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Folders with predictable names: only the owner can read their files, and dl does not use a folder that another user has made.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy
. "$srcdir/tests/attacks/users.sh"
preload_sanitizers
group=$work/group
shared_folder "$group"
cd "$group" || exit 1

py () { # py USER FOLDER CODE: run Python code as that user, with umask 0
    user=$1
    folder=$2
    $user env -u SLURM_JOB_ID -u SLURM_STEP_ID DL_COMM_TIMEOUT=20 sh -c 'umask 0; exec timeout 120 "$@"' sh "$python" -c "
import os, sys, numpy, time
folder = '$folder'
$3"
}

seen () { # seen FOLDER: print what the attacker can read or write there
    attacker find "$1" -readable -type f 2>/dev/null
    attacker find "$1" -writable ! -type l 2>/dev/null
}

access () { # access PATH: print its permissions, without the setgid bit
    stat -c %a "$1" | tail -c 4
}

# ---- elastic training

world='import slurmdl.elastic as e
w = e.Elastic(dir=folder, min=1, settle=0.1, timeout=30)
c = w.form()
print(float(c.allreduce(numpy.ones(1))[0]))
sys.stdout.flush()
w.commit(1)
os._exit(0)'
is "$(py victim "$group/world" "$world" 2>&1)" 1.0 "elastic: training in a group's folder"
is "$(access "$group/world")" 700 "its folder is private, whatever the umask is"
is "$(find "$group/world" -type f ! -perm 600)" "" "so are its files, which contain the key"
is "$(seen "$group/world")" "" "another member cannot read them"

attacker sh -c "umask 0; mkdir '$group/early'"
like "$(py victim "$group/early" "$world" 2>&1)" "early: belongs to user $attacker_id" "elastic: refuses a folder that another user created"
is "$(find "$group/early" -user $victim_id)" "" "nothing was written there"
mkdir "$victim_home/real"
chown $victim_id "$victim_home/real"
attacker ln -s "$victim_home/real" "$group/linked"
like "$(py victim "$group/linked" "$world" 2>&1)" "linked: .*link" "nor through another user's link"
is "$(ls "$victim_home/real")" "" "nothing was written behind it"

# ---- dl import in a folder where everyone may create files: the scripts that it uses, and the mode of its output
if has yaml >/dev/null; then
    mkdir -m 1777 "$work/everybody"
    cd "$work/everybody" || exit 1
    for user in victim attacker; do
        $user sh -c 'cat >"$0"' $user.yaml <<END
hydra: {sweeper: {params: {x: "1,2"}}}
END
    done
    victim sh -c 'cat >job.yaml' <<END
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: t}
spec: {runtimeRef: {name: torch-distributed}}
END
    attacker sh -c 'cat >runtime.yaml' <<END
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, command: [planted]}]}}}}}]}}}
END
    attacker sh -c 'echo "@hydra.main()" >planted.py'
    victim sh -c 'umask 000; timeout 300 dl import victim.yaml attacker.yaml job.yaml' >"$work/imported" 2>&1
    is "$(grep -l planted victim.conf job.conf)" "" "dl import: ignores scripts and runtimes that another user put beside a file"
    is "$(grep -l planted attacker.conf)" attacker.conf "but uses those of the file's owner"
    is "$(stat -c %a victim.conf job.conf | xargs)" "644 644" "others cannot write to what it creates"
    cd "$group" || exit 1
else
    skip "dl import" "no PyYAML"
fi

# ---- a key is not readable even for a moment: check the mode that open(2) gets

if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    (
        umask 0
        strace -f -e trace=openat,open,chmod,fchmod,creat -o "$work/calls" timeout 120 $python -c "
import os, sys, numpy
folder = '$work/traced'
$world"
    ) >/dev/null 2>&1
    is "$(sed -n "s,.*/proc/self/fd/[0-9]*/.*O_CREAT.*\, \(0[0-7]*\)).*,\1,p" "$work/calls" | sort -u)" 0600 "created with 0600"
else
    skip "created with 0600" "no strace"
fi

# ---- ranks of a run, and checkpoints

ranks='import slurmdl
run = slurmdl.init(folder)
x = numpy.ones(2)
run.protect("x", x)
run.save(1)
print("saved", run.dir)'
is "$(py victim "$group/run" "$ranks" 2>&1)" "saved $group/run/a.1" "a run in a group's folder"
is "$(find "$group/run" -name '*.h5' -perm /022 -path '*ckpt*')" "" "nobody else can write to a checkpoint"
# ---- the answer to `dl log`, whose socket address the kernel shows to everyone
cat >"$work/worker.py" <<'END'
import os, socket, subprocess
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
    worker.bind("socket")
    dl = subprocess.Popen(["dl", "log", "loss=1"], env={**os.environ, "DL_SOCKET": "socket"})
    message, address = worker.recvfrom(100)
    with open("address", "w") as f:
        f.write(address[1:].decode())
    open("asked", "w").close()
    while not os.path.exists("answered"):
        assert dl.poll() is None, "it took another user's answer"
    assert dl.poll() is None, "it took another user's answer"
    worker.sendto(b"ok", address)
    print(dl.wait(), message.split()[-2:])
END
cat >"$work/impostor.py" <<'END'
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    try:
        s.sendto(b"ok", "\0" + sys.argv[1])
        print("sent")
    except PermissionError as error:
        print("refused")
END
(cd "$victim_home" && victim timeout 100 $python "$work/worker.py" >"$work/logged" 2>&1) &
wait_for 60 test -e "$victim_home/asked"
is "$(attacker $python "$work/impostor.py" "$(cat "$victim_home/address")")" refused "another user cannot answer for the worker"
victim touch "$victim_home/answered"
wait
is "$(cat "$work/logged")" "0 [b'loss', b'1']" "but the worker can"
done_testing
