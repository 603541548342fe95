#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of a made-up Horovod program: meets the others at the server as its gloo controller does.

Every rank puts a value under its number in the scopes global, local_HOST and cross_LOCAL_RANK, asks for those of
the others until they are there, and says that it has done with the scope.  Twice: after a shutdown a program may
initialise again, and must not be given the values of the first time.

    horovod.py [ROUNDS [SIZE-OF-VALUE]]
"""
import http.client
import os
import sys
import time

env = {k[8:].lower(): v for k, v in os.environ.items() if k.startswith("HOROVOD_")}
address, port = env["gloo_rendezvous_addr"], int(env["gloo_rendezvous_port"])


def request(method, path, body=None):
    connection = http.client.HTTPConnection(address, port, timeout=200)
    connection.request(method, path, body)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data


def wait(path):
    end = time.monotonic() + 200
    while time.monotonic() < end:
        status, data = request("GET", path)
        if status == 200:
            return data
        assert status == 404, status
        time.sleep(0.02)
    sys.exit(f"rank {env['rank']}: nobody put {path}")


def meet(scope, rank, size, turn, length):
    mine = f"{turn}:{env['rank']}:".encode().ljust(length, b"\0")
    assert request("PUT", f"/{scope}/rank_{rank}", os.uname().nodename.encode())[0] == 200
    assert request("PUT", f"/{scope}/{rank}", mine)[0] == 200
    others = [wait(f"/{scope}/{i}") for i in range(size)]
    assert others[rank] == mine
    assert all(o.startswith(b"%d:" % turn) and len(o) == length for o in others), others
    return sorted(int(o.split(b":")[1]) for o in others)


def leave(scope, rank):
    assert request("DELETE", f"/{scope}/{rank}")[0] == 200


def gone(scope, turn):
    """Wait until all ranks have left, and perhaps met again."""
    try:
        while request("GET", f"/{scope}/0")[1].startswith(b"%d:" % turn):
            time.sleep(0.02)
    except OSError:
        pass  # rank 0 has ended, and its server with it


def main():
    rounds, length = (int(a) for a in (sys.argv[1:] + ["2", "40"][len(sys.argv) - 1:]))
    scopes = [("global", "rank", "size"), ("local_" + env["hostname"], "local_rank", "local_size"),
              ("cross_" + env["local_rank"], "cross_rank", "cross_size")]
    for turn in range(rounds):
        met = []
        for scope, rank, size in scopes:
            met.append(meet(scope, int(env[rank]), int(env[size]), turn, length))
        for scope, rank, size in reversed(scopes):
            leave(scope, int(env[rank]))
        gone("global", turn)
    print(env["rank"], *("+".join(map(str, m)) for m in met))


main()
