#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Addresses of ranks: names that do not resolve, loopback in /etc/hosts, exported variables, arbitrary distributions.
. "$srcdir/tests/lib.sh"
need_cluster
export PATH="$builddir/launcher:$PATH"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME
[ "$(id -u)" -eq 0 ] || skip_all "hosts need root"
cluster_up reach --nodes=3 --hosts --plugin="$PLUGIN dl=$builddir/launcher/dl"
dir=${SLURM_CONF%/*}
innode () { # innode K COMMAND...: run it in the namespaces of node K
    p=$(cat "$dir/run/slurmd-n$1.pid")
    shift
    nsenter -t "$p" -m -u -n "$@"
}
hosts () { # hosts K <TEXT: replace /etc/hosts of node K
    k=$1
    cat >"$work/hosts.$k"
    [ -n "$(eval "echo \$bound$k")" ] || innode "$k" mount --bind "$work/hosts.$k" /etc/hosts
    eval "bound$k=1"
}
run () { # run OPTION... -- COMMAND: run a shell command as a step, and print its sorted output in one line
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    # shellcheck disable=SC2086
    timeout 300 srun -Q --cpu-bind=none $options sh -c "$2" 2>err | sort | tr '\n' ' '
}
address () { # address K: print the address of node K
    awk -v n="n$1" '$2 == n { print $1 }' "$dir/hosts"
}
everything='env | grep -E "(ADDR|IFNAME|IFACE|MASTER|URI|INTERFACE|HOST|POD_IP|ENDPOINT|COORDINATOR|TF_CONFIG)" | grep -vE "^(SLURM|DL_COMM)" | grep -E "=(lo|(.*[^0-9.])?127\.)|\"127\.|::1"; true'
frameworks="torch torchrun lightning deepspeed accelerate tf jax horovod ps paddle auto"
no_loopback () { # no_loopback NAME: check that no framework gets a loopback address or interface
    found=
    for f in $frameworks; do
        tasks=3
        [ "$f" != ps ] || tasks=4
        found="$found$(run -N3 -n$tasks --dl=$f -- "$everything")"
    done
    is "$found" "" "$1: no loopback address or interface, whatever the framework"
}

# ---- 127.0.1.1 in /etc/hosts, as Debian's installer and cloud-init write it
for k in 1 2 3; do { echo "127.0.0.1 localhost"; echo "127.0.1.1 n$k.example.org n$k"; echo "::1 n$k"; cat "$dir/hosts"; } | hosts $k; done
is "$(run -N3 -n3 --dl=torch -- 'echo $SLURM_PROCID:$GLOO_SOCKET_IFNAME')" "0:eth0 1:eth0 2:eth0 " "a host's own name is 127.0.1.1: uses the interface that the others reach"
is "$(cat err)" "" "without a message"
for k in 1 2 3; do { echo "127.0.0.1 localhost n$k"; grep -v " n$k\$" "$dir/hosts"; } | hosts $k; done
no_loopback "its own name is 127.0.0.1 only"
is "$(run -N3 -n3 -r1 --dl=torch -- 'echo $MASTER_ADDR' 2>/dev/null)$(run -N2 -n2 -w n2,n3 --dl=torch -- 'echo $SLURM_PROCID:$MASTER_ADDR')" "0:$(address 2) 1:n2 " "the master is an address that the others reach"

# ---- NodeName is not a host name
for k in 1 2 3; do
    echo "127.0.0.1 localhost" | hosts $k
    innode $k hostname "ip-10-77-0-$k"
done
is "$(run -N3 -n3 --dl=torch -- 'echo $SLURM_PROCID:$MASTER_ADDR:$GLOO_SOCKET_IFNAME')" "0:$(address 1):eth0 1:$(address 1):eth0 2:$(address 1):eth0 " "names that only Slurm knows: uses its addresses"
no_loopback "names that only Slurm knows"
is "$(run -N1 -n2 -w n2 --dl=torch -- 'echo $MASTER_ADDR:$GLOO_SOCKET_IFNAME')" "127.0.0.1:lo 127.0.0.1:lo " "a step on one node needs no address"
for k in 1 2 3; do innode $k hostname "N$k.example.org"; done
is "$(run -N2 -n2 --dl=torch -- 'echo $SLURM_PROCID:$MASTER_ADDR')" "0:$(address 1) 1:$(address 1) " "a name in capitals, with a domain"
like "$(cat err)" 'n[23] cannot resolve the name n1, the node of rank 0, .* uses 10[.0-9]+ from slurm.conf instead: fix /etc/hosts or the DNS of n[23]' "is the host's, and should have an address"
for k in 1 2 3; do innode $k hostname "n$k"; done

# ---- one node cannot resolve the others
for k in 1 2; do hosts $k <"$dir/hosts"; done
is "$(run -N3 -n3 --dl=torch -- 'echo $SLURM_PROCID:$MASTER_ADDR:$GLOO_SOCKET_IFNAME')" "0:n1:eth0 1:n1:eth0 2:$(address 1):eth0 " "a node that does not know the master"
is "$(grep -c 'n3 cannot resolve the name n1' err) $(grep -c 'dl:' err)" "1 1" "is reported in one line, at the start"
hosts 3 <"$dir/hosts"

# ---- addresses that are local to one node, and several networks
innode 1 ip link add docker0 type veth peer name dum1
innode 1 ip addr add 172.17.0.1/16 dev docker0
innode 1 ip link set docker0 up
{ echo "172.17.0.1 n1"; grep -v ' n1$' "$dir/hosts"; } | hosts 1
is "$(run -N2 -n2 --dl=horovod -- 'echo $HOROVOD_GLOO_RENDEZVOUS_ADDR:$HOROVOD_GLOO_IFACE')" "$(address 1):eth0 $(address 1):eth0 " "the name of rank 0's node resolves to a container bridge there: uses the route to the others"
innode 1 ip link delete docker0
hosts 1 <"$dir/hosts"
is "$(MASTER_ADDR=n2 run -N1 -n1 -w n1 --dl=torch -- 'echo $MASTER_ADDR:$GLOO_SOCKET_IFNAME')" "n2:eth0 " "the interface is on the route to an exported MASTER_ADDR"
innode 1 ip link add ib0 type veth peer name ib0 netns "$(cat "$dir/run/slurmd-n2.pid")"
for k in 1 2; do
    innode $k ip addr add 192.168.77.$k/24 dev ib0
    innode $k ip link set ib0 up
    { cat "$dir/hosts"; printf '192.168.77.%s n%s-ib\n' 1 1 2 2; } | hosts $k
done
is "$(MASTER_ADDR=n1-ib run -N2 -n2 --dl=torch -- 'echo $SLURM_PROCID:$MASTER_ADDR:$GLOO_SOCKET_IFNAME')$(cat err)" "0:n1-ib:ib0 1:n1-ib:ib0 " "also on a network other than that of the nodes' names"
innode 1 ip link delete ib0
for k in 1 2; do hosts $k <"$dir/hosts"; done

# ---- arbitrary distributions
printf '%s\n' n3 n1 n2 n1 >order
order='echo $SLURM_PROCID:$SLURMD_NODENAME:$MASTER_ADDR:$LOCAL_RANK/$LOCAL_WORLD_SIZE:${SLURM_DL_HOSTFILE-}'
want="0:n3:n3:0/1: 1:n1:n3:0/2: 2:n2:n3:0/1: 3:n1:n3:1/2: "
is "$(SLURM_HOSTFILE=$PWD/order run -n4 -m arbitrary --dl=torch -- "$order")" "$want" "arbitrary: SLURM_HOSTFILE"
is "$(run -n4 -m arbitrary -w n3,n1,n2,n1 --dl=torch -- "$order")" "$want" "arbitrary: -w"
is "$(run -n4 --distribution=arbitrary "--nodelist=$PWD/order" --dl=horovod -- 'echo $HOROVOD_RANK:$HOROVOD_LOCAL_RANK:$HOROVOD_CROSS_RANK')" "0:0:2 1:0:0 2:0:1 3:1:0 " "arbitrary: a file, and a framework with lists"
# ---- variables that the user exported
told () { # told WANTED VARIABLE=VALUE OPTION...: check what a step on n1 and n3 reports about the variable
    want=$1
    # shellcheck disable=SC2163
    export "$2"
    name=${2%%=*}
    shift 2
    timeout 300 srun -Q --cpu-bind=none -w n1,n3 -N2 --ntasks-per-node=1 "$@" true 2>err
    unset "$name"
    is "$(sed 's/^\(slurmstepd-n[0-9]*:\|\[[-0-9T:.]*\]\) error: dl: //' err | sort)" "$want" "$name with $*"
}
away='of n1, where rank 0 runs: unset it in the job script'
lost='other nodes do not reach this one; unset it in the job script'
for k in 1 3; do innode $k ip link add dum0 type veth peer name dum1; done
told "MASTER_ADDR=n2 was exported, and is no address $away" MASTER_ADDR=n2 --dl=torch
told "MASTER_ADDR=localhost was exported, and no other node of this step reaches it: unset it in the job script" MASTER_ADDR=localhost --dl=torch
told "MASTER_ADDR=login.invalid was exported, and has no address on n1, where rank 0 runs: unset it in the job script" MASTER_ADDR=login.invalid --dl=torch
told "" MASTER_ADDR=N1 --dl=torch
told "" "MASTER_ADDR=$(address 1)" --dl=torch
told "" MASTER_ADDR=n2 --dl=horovod
told "JAX_COORDINATOR_ADDRESS=n2 was exported, and is no address $away" JAX_COORDINATOR_ADDRESS=n2:1234 --dl=jax
told "MASTER_ADDR=n1:29500 was exported, and is no address, but one with a port: unset it in the job script" MASTER_ADDR=n1:29500 --dl=torch
told "MASTER_ADDR=n1 n3 was exported, and has no address on n1, where rank 0 runs: unset it in the job script" "MASTER_ADDR=n1
n3" --dl=torch
told "JAX_COORDINATOR_ADDRESS=n1 was exported, and has no port: unset it in the job script" JAX_COORDINATOR_ADDRESS=n1 --dl=jax
told "GLOO_SOCKET_IFNAME was exported, and is empty: unset it in the job script" GLOO_SOCKET_IFNAME= --dl=torch
told "MASTER_PORT=auto was exported, and is no port" MASTER_PORT=auto --dl=torch
told "GLOO_SOCKET_IFNAME=lo was exported, and is the loopback interface, which no other node reaches on n1: $lost" GLOO_SOCKET_IFNAME=lo --dl=torch
told "GLOO_SOCKET_IFNAME=dum0 was exported, and is down on n1: $lost
GLOO_SOCKET_IFNAME=dum0 was exported, and is down on n3: $lost" GLOO_SOCKET_IFNAME=dum0 --dl=torch
told "" GLOO_SOCKET_IFNAME=eth0 --dl=torch
innode 3 ip link delete dum0
told "HOROVOD_GLOO_IFACE=dum0 was exported, and is down on n1: $lost
HOROVOD_GLOO_IFACE=dum0 was exported, and is no interface of this node on n3: $lost" HOROVOD_GLOO_IFACE=dum0 --dl=horovod
told "" NCCL_SOCKET_IFNAME=eth --dl=torch
told "" NCCL_SOCKET_IFNAME=^lo,docker --dl=torch
told "NCCL_SOCKET_IFNAME==eth was exported, and is no interface of this node on n1: $lost
NCCL_SOCKET_IFNAME==eth was exported, and is no interface of this node on n3: $lost" NCCL_SOCKET_IFNAME==eth --dl=torch
innode 1 /usr/bin/python3 -c 'import socket, time
s = socket.socket()
s.bind(("0.0.0.0", 29517))
s.listen()
print("listens", flush=True)
time.sleep(600)' >listener &
listener=$!
wait_for 60 grep -q listens listener
told "MASTER_PORT=29517 was exported, and rank 0 cannot listen there (Address already in use): unset it in the job script" MASTER_PORT=29517 --dl=torch
out=$(MASTER_ADDR=n2 MASTER_PORT=29517 timeout 300 srun -Q --cpu-bind=none -w n1,n3 -N2 -n2 --dl=torch dl env 2>/dev/null)
is "$(echo "$out" | grep -c "MASTER_ADDR=n2 was exported, and is no address $away")/$(echo "$out" | grep -c 'MASTER_PORT=29517 was exported, and rank 0 cannot')/$(echo "$out" | grep -c '^  MASTER_ADDR=n2$')" 1/1/2 "dl env prints it, too, and lists what was exported"
kill $listener
out=$(GLOO_SOCKET_IFNAME=lo timeout 300 srun -Q --cpu-bind=none -w n1,n3 -N2 -n4 --dl=torch dl env 2>/dev/null)
is "$(echo "$out" | grep -c 'GLOO_SOCKET_IFNAME=lo was exported, and is the loopback')/$(echo "$out" | grep -c '^  GLOO_SOCKET_IFNAME=lo$')" 1/4 "in a step of any size"
unharmed
done_testing
