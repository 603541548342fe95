#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# TensorFlow steps with roles: a step with parameter servers ends with its chief, and TensorFlow trains with both of its
# strategies, by scripts from its guides that do not use Slurm's variables.  DL_TEST_TENSORFLOW names a Python with TensorFlow.
. "$srcdir/tests/lib.sh"
need_cluster
export PATH="$builddir/launcher:$PATH"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT TF_CONFIG
# give tasks time to end after SIGTERM, even on a busy machine
hosts_up tf --nodes=2 --cpus=4 --conf=KillWait=60 --plugin="$PLUGIN dl=$builddir/launcher/dl"
dir=${SLURM_CONF%/*}
for k in 1 2; do # 127.0.1.1, as Debian's installer and cloud-init write it
    [ -n "$hosts" ] || break
    { echo "127.0.0.1 localhost"; echo "127.0.1.1 n$k.example.org n$k"; cat "$dir/hosts"; } >"hosts.$k"
    nsenter -t "$(cat "$dir/run/slurmd-n$k.pid")" -m mount --bind "$work/hosts.$k" /etc/hosts
done
here=$srcdir/tests/cluster

# ---- the end of a step with servers

cat >servers.sh <<'END'
case $DL_ROLE in
chief) until [ "$(ls up.* 2>/dev/null | wc -l)" -eq 3 ]; do sleep 0.1; done
    eval "${CHIEF:-exit 0}" ;;
*)  trap 'echo "$DL_ROLE $DL_ROLE_INDEX is asked to end"; exit 9' TERM
    eval "${SERVER:-}"
    >up.$SLURM_PROCID
    # a child process, like a program started by a script
    sleep 1000 &
    wait ;;
esac
END
step () { # step OPTION...: run four tasks; sets $status, and the files out and err
    rm -f up.*
    timeout 300 srun --dl=tf "$@" -N2 -n4 sh servers.sh >out 2>err
    status=$?
}
step --dl-roles=chief:1,ps:1,worker:*
is "$status $(cat err)" "0 " "the step ends with its chief, without a message"
is "$(sort out)" "ps 0 is asked to end
worker 0 is asked to end
worker 1 is asked to end" "and the others have time to end"
CHIEF='exit 7' step --dl-roles=chief:1,ps:1,worker:*
is $status 7 "its status is that of the chief"
CHIEF='kill -ABRT $$' step --dl-roles=chief:1,ps:1,worker:*
is $status 134 "also for a signal"
CHIEF='sleep 2' SERVER='[ "$DL_ROLE" = ps ] || trap - TERM' step --dl-roles=chief:1,ps:1,worker:*
is "$status $(cat out)" "0 ps 0 is asked to end" "servers that SIGTERM kills"
sed -i 's/^chief)/worker0)/; s/^case .*/case $DL_ROLE$([ "$DL_ROLE" = ps ] || echo $DL_ROLE_INDEX) in/' servers.sh
step --dl-roles=ps:2,worker:*
is "$status $(sort out | tr '\n' ,)" "0 ps 0 is asked to end,ps 1 is asked to end,worker 1 is asked to end," "without a chief it ends with worker 0"
cat >alone.sh <<'END'
[ "$DL_ROLE" = chief ] || sleep 3
echo "$DL_ROLE $DL_ROLE_INDEX ends"
[ "$DL_ROLE$DL_ROLE_INDEX" != worker1 ] || exit 3
END
timeout 300 srun --dl=tf --dl-roles=chief:1,worker:* -N2 -n3 sh alone.sh >out 2>err
is "$? $(sort out | tr '\n' ,)" "3 chief 0 ends,worker 0 ends,worker 1 ends," "without servers each task ends by itself"

# ---- TensorFlow

python=${DL_TEST_TENSORFLOW:-${DL_TEST_PYTHON:-/usr/bin/python3}}
if ! $python -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("tensorflow"))' 2>/dev/null; then
    skip "TensorFlow" "not installed: DL_TEST_TENSORFLOW is a Python with tensorflow-cpu of PyPI"
    unharmed
    done_testing
fi
export TF_CPP_MIN_LOG_LEVEL=2 OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 CUDA_VISIBLE_DEVICES=

mirrored () { # mirrored TASKS [OPTION]...: print the sorted output of all tasks
    tasks=$1
    shift
    timeout 900 srun --dl=tf "$@" -N2 -n"$tasks" "$python" "$here/mirrored.py" 2>err | sort
    sed 's/^/# /' err | tail -3 >&2
}

out=$(mirrored 2)
is "$(echo "$out" | sed 's/, weights.*//')" "worker 0: 2 replicas, loss falls True
worker 1: 2 replicas, loss falls True" "MultiWorkerMirroredStrategy, two workers"
is "$(echo "$out" | sed 's/.*weights//' | sort -u | wc -l)" 1 "and they have the same weights"
out=$(mirrored 3 --dl-roles=chief:1,worker:*)
is "$(echo "$out" | sed 's/, weights.*//')" "chief 0: 3 replicas, loss falls True
worker 0: 3 replicas, loss falls True
worker 1: 3 replicas, loss falls True" "with a chief"

served () { # served TASKS ROLES: run ParameterServerStrategy; sets $status, and the file out
    timeout 900 srun --dl=tf --dl-roles="$2" -N2 -n"$1" "$python" "$here/servers.py" >out 2>err
    status=$?
    [ "$status" -eq 0 ] || sed 's/^/# /' err | tail -5
}
served 4 chief:1,ps:1,worker:*
is "$(sort out | sed 's/accuracy [01][.][0-9]*/accuracy N/')" "chief: 2 workers, 1 servers, 60 steps, accuracy N, variables on /job:ps
ps 0 serves
worker 0 serves
worker 1 serves" "ParameterServerStrategy trains"
like "$(cat out)" 'accuracy (0[.]9|1)' "and learns"
is "$status" 0 "and the step ends with its chief"
CHIEF_STATUS=5 served 4 chief:1,ps:2,worker:*
is "$status $(grep -c serves out)" "5 3" "two servers, and a chief that fails"
unharmed
done_testing
