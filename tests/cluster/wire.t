#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# what doc/security.md says that a reader of the network has, in a real Slurm: signed RPCs are no secret
. "$srcdir/tests/lib.sh"
need_cluster
[ "$(id -u)" -eq 0 ] || skip_all "to read the wire needs root"
cat >wire.py <<'END'
import os
import socket

# what passes on loopback and has the name of the variable, until a file says that it is over
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
wire.bind(("lo", 0))
wire.settimeout(0.2)
print("reads", flush=True)
with open("seen", "wb") as seen:
    while not os.path.exists("over"):
        try:
            packet = wire.recv(1 << 17)
            if b"DL_SECRET=" in packet:
                seen.write(packet)
        except socket.timeout:
            pass
END
python3 wire.py >said 2>&1 &
reader=$!
wait_for 60 sh -c "grep -q . said"
grep -q reads said || skip_all "this kernel shows no packets: $(tail -1 said)"
cluster_up wire --nodes=1 --plugin="$PLUGIN" || { echo "Bail out! no cluster"; exit 1; }
timeout 300 srun -n2 --dl=torch sh -c 'echo "$SLURM_PROCID $DL_SECRET"' >out 2>err
secret=$(sed -n 's/^0 //p' out)
like "$secret" '^[0-9a-f]{32}$' "a step has a secret"
is "$(sed -n 's/^1 //p' out)" "$secret" "both ranks have it"
timeout 300 srun -n1 true
touch over
wait $reader
ok "$(grep -qaF "$secret" seen; echo $?)" "a reader of the wire has the secret of a step"
is "$(scontrol show job | grep -cF "$secret"; scontrol show step | grep -cF "$secret")" "0
0" "who asks Slurm has not"
done_testing
