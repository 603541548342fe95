#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Check doc/security.md in a real Slurm: RPCs are signed but not encrypted, so someone who reads the network gets a step's secret.
# Someone who holds the step's ports gets nothing.
. "$srcdir/tests/lib.sh"
need_cluster
[ "$(id -u)" -eq 0 ] || skip_all "to read the wire needs root"
cat >wire.py <<'END'
import os
import socket

# record loopback packets that contain the variable's name, until the file "over" appears
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
cluster_up wire --nodes=1 --plugin="$PLUGIN"
timeout 300 srun -n2 --dl=torch sh -c 'echo "$SLURM_PROCID $DL_SECRET"' >out 2>err
secret=$(sed -n 's/^0 //p' out)
like "$secret" '^[0-9a-f]{32}$' "a step has a secret"
is "$(sed -n 's/^1 //p' out)" "$secret" "both ranks have it"
timeout 300 srun -n1 true
touch over
wait $reader
ok "$(grep -qaF "$secret" seen; echo $?)" "who reads the network gets the secret of a step"
is "$(scontrol show job | grep -cF "$secret"; scontrol show step | grep -cF "$secret")" "0
0" "who asks Slurm does not"

# ---- another user holds every port that Slurm can reserve for a step
meet=$builddir/tests/runtime/comm/meet
range=$(scontrol show config | sed -n 's/^MpiParams *= ports=//p')
cat >squat.py <<'END'
import socket
import sys
import time

first, last = sys.argv[1].split("-")
held = []
for port in range(int(first), int(last) + 1):
    for family, any_address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        s = socket.socket(family)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            s.bind((any_address, port))
            s.listen(64)
            held.append(s)
        except OSError as e:
            print(port, any_address, e, flush=True)
print("holds", len(held), flush=True)
time.sleep(600)
END
PATH=/usr/bin:/bin setpriv --reuid=65534 --regid=65534 --clear-groups python3 - "$range" <squat.py >squat.out 2>&1 &
squatter=$!
wait_for 60 grep -q holds squat.out
like "$(tail -n 1 squat.out)" '^holds ([4-9][0-9]|[1-9][0-9][0-9])$' "another user holds the ports of MpiParams ($range)"
is "$(DL_COMM_TIMEOUT=200 timeout 300 srun -Q -n2 --dl=torch "$meet" 2>err | sort)" "0 of 2 by tcp over native: 3
1 of 2 by tcp over native: 3" "the ranks of a step meet anyway" || sed 's/^/# /' err
like "$(cat err)" 'port [0-9]+ of this node is in use' "and the user is reported about MASTER_PORT"
kill $squatter
wait $squatter 2>/dev/null
done_testing
