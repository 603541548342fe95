#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Private clusters: as an ordinary user, several at once, with a network for each node, and removed without a trace.
# shellcheck source=lib.sh
. "$srcdir/tests/lib.sh"
need_slurm
case $CFLAGS in *sanitize*) skip_all "a script of the shell: tested in the build without sanitizers" ;; esac
chmod 1777 "$work"
# copy it to where an ordinary user can read it
mc=$work/minicluster.sh
cp "$srcdir/contrib/minicluster" "$mc"
export MINICLUSTER_DIR=$work
unset XDG_RUNTIME_DIR SLURM_CONF
trap 'timeout 300 "$mc" down --all; ordinary down --all; clean_up' EXIT

ordinary () { as_ordinary "$mc" "$@"; }
use () {
    SLURM_CONF=$1/slurm.conf
    export SLURM_CONF
}
all=$work/minicluster-$(as_ordinary id -u)

# ---- mistakes
like "$("$mc" --help)" 'usage: minicluster up' "help"
mkdir "$work/bin"
printf '#!/bin/sh\n[ "$1" != -un ] && exec /usr/bin/id "$@"\n' >"$work/bin/id"
chmod +x "$work/bin/id"
like "$(PATH=$work/bin:$PATH "$mc" up --name=none 2>&1)" "^minicluster: user [0-9]+ has no name, which Slurm needs" "a user without a name"
for bad in 'up --nodes=x' 'up --nodes=0' 'up --name=a/b' 'up --nope' 'up --name' 'up --plugin=/nonexistent' 'up --conf=nope' 'env nope'; do
    out=$(timeout 300 "$mc" $bad 2>&1)
    is $? 1 "refused: $bad"
    like "$out" '^minicluster: ' "says why: $bad"
done

like "$("$mc" up --name=refused --conf=MaxArraySize=many 2>&1)" '^minicluster: slurmctld did not start' "a configuration that slurmctld refuses is reported"
[ ! -d "$work/minicluster-$(id -u)/refused" ]
ok $? "and nothing of it is left"
like "$("$mc" up --slurm=/nonexistent 2>&1)" '^minicluster: --slurm: /nonexistent/sbin/slurmctld: no such program' "--slurm without a Slurm"
mkdir -p "$work/prefix/bin" "$work/prefix/sbin"
printf '#!/bin/sh\necho "error: Invalid user for SlurmUser me, ignored" >&2\nexit 1\n' >"$work/prefix/sbin/slurmctld"
chmod +x "$work/prefix/sbin/slurmctld"
like "$("$mc" up --name=user --slurm="$work/prefix" 2>&1)" '^minicluster: this Slurm cannot run as [^ ]+ .*: use another user$' "a release that refuses the user"
for p in slurmctld slurmd; do ln -sf "$(command -v $p)" "$work/prefix/sbin"; done
touch one.so two.so
timeout 300 "$mc" up --name=prefix --nodes=1 --slurm="$work/prefix" --plugin="$PWD/one.so a=1" --plugin "$PWD/two.so" >/dev/null
is "$(cat "$work/minicluster-$(id -u)/prefix/plugstack.conf")" "optional $PWD/one.so a=1
optional $PWD/two.so" "--plugin twice: both, in that order"
is "$(timeout 300 "$mc" env prefix | sed -n 's/^export PATH=//p')" "$work/prefix/bin:$work/prefix/sbin:\$PATH" "--slurm: env puts its programs first"
timeout 300 "$mc" down prefix

# ---- an ordinary user starts two clusters at the same time
ordinary up --name=one --nodes=2 --cpus=2 --gpus=2 >"$work/one" 2>&1 &
ordinary up --name=two --nodes=1 --conf=KillWait=7 >"$work/two" 2>&1 &
wait %1
is $? 0 "first"
wait %2
is $? 0 "second, at the same time"
sed 's/^/# /' "$work/one" "$work/two"
[ -d "$all/one" ] && [ -d "$all/two" ] || bail_out "no cluster"
like "$(ordinary ls)" '^one up' "ls"
like "$(ordinary up --name=one 2>&1)" 'one is already up' "a second one of that name is refused"
use "$all/one"
is "$(as_ordinary srun -N2 -n2 sh -c 'echo "$SLURMD_NODENAME"' | sort | tr '\n' ' ')" "n1 n2 " "srun over both nodes"
is "$(as_ordinary srun -N1 -n1 --gres=gpu:2 sh -c 'echo "$CUDA_VISIBLE_DEVICES"')" "0,1" "GPUs"
if [ "$(id -u)" -eq 0 ]; then
    setpriv --reuid=61002 --regid=61002 --clear-groups env HOME=/ timeout 300 srun -N1 -n1 id >"$work/stranger" 2>&1
    is "$? $(grep -c uid= "$work/stranger")" "1 0" "another user runs nothing there, as the cluster's user or otherwise"
fi
as_ordinary sbatch -W --array=1-20 -o /dev/null --wrap true >/dev/null
is $? 0 "a job array of 20"
as_ordinary sbatch -o /dev/null --wrap "srun sleep 1000.$$" >/dev/null
wait_for 300 sh -c 'squeue -h -t R | grep -q wrap'
use "$all/two"
is "$(as_ordinary squeue -h)" "" "the other cluster has jobs of its own"
like "$(as_ordinary scontrol show config)" '^KillWait += 7 sec' "and another configuration"
ordinary down one
is $? 0 "down, with a job that runs"
is "$(grep -sl "$all/one/" /proc/[0-9]*/cmdline 2>/dev/null)" "" "no daemon is left"
is "$(pgrep -xf "sleep 1000.$$")" "" "no process of the job is left"
[ ! -d "$all/one" ]
ok $? "no folder is left"
is "$(as_ordinary srun -N1 echo alive)" alive "the other one still runs"
ordinary down one
is $? 0 "down again"

# ---- a cluster that was killed
pkill -9 -f "$all/two/"
like "$(ordinary ls)" '^two dead' "a dead cluster is reported"
ordinary up --name=two --nodes=1 >/dev/null 2>&1
is $? 0 "its name can be used again"
ordinary down --all
is "$(ordinary ls)" "" "down --all"

# ---- hosts
# A container or chroot may deny one of these even to root.
may_make_hosts () {
    [ "$(id -u)" -eq 0 ] && ip link add mct0 type bridge && ip link delete mct0 &&
        ip netns add mct0 && ip -n mct0 link && ip netns delete mct0
}
if may_make_hosts >/dev/null 2>&1; then
    timeout 300 "$mc" up --name=hosts --nodes=2 --gpus=1 --hosts >"$work/hosts" 2>&1
    is $? 0 "up --hosts"
    sed 's/^/# /' "$work/hosts"
    use "$work/minicluster-0/hosts"
    is "$(timeout 300 srun -N2 -n2 hostname | sort | tr '\n' ' ')" "n1 n2 " "each node is a host"
    timeout 300 srun -N2 -n2 /usr/bin/python3 -c '
import os, socket, time
if os.environ["SLURM_PROCID"] == "0":
    s = socket.create_server(("", 7777))
    s.settimeout(10)
    s.accept()[0].sendall(b"hello")
else:
    for _ in range(100):
        try:
            assert socket.create_connection(("n1", 7777), 1).recv(5) == b"hello"
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    else:
        raise SystemExit("no connection")'
    is $? 0 "hosts reach each other by name"
    bridge=mcb$(cat "$work/minicluster-0/hosts/place")
    like "$(ip netns list)" "^$bridge-n2" "a namespace for each"
    timeout 300 "$mc" down hosts
    is "$(ip -o link | grep -wE "$bridge(\.[0-9]+)?")$(ip netns list | grep "^$bridge-")" "" "no bridge and no namespace is left"
else
    skip "up --hosts" "needs root and network namespaces"
fi
done_testing
