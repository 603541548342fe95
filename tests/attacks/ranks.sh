# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Two ranks that another user attacks: source this after tests/attacks/users.sh.
command -v python3 >/dev/null || skip_all "no python3"
meet=$builddir/tests/runtime/comm/meet
network=$srcdir/tests/attacks/network.py
# what two ranks print that meet
both="0 of 2 by tcp over native: 3
1 of 2 by tcp over native: 3"
for v in $(env | sed -n 's/^\(\(SLURM\|PMI\|PMIX\|DL_COMM\)[A-Z_]*\)=.*/\1/p') DL_SECRET MASTER_ADDR MASTER_PORT RANK WORLD_SIZE; do unset "$v"; done

free_port () { # print a free port
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

ports () { # print the ports at which the victim listens
    victim python3 "$network" ports "$victim_id" | tr , '\n'
}

listens () { # listens PORT: whether the victim listens there
    ports | grep -qx "$1"
}

end () { # end JOB: kill its children, because the job itself is a shell
    pkill -P "$1"
    wait "$1" 2>/dev/null
}
