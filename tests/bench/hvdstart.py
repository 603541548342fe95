# SPDX-License-Identifier: Apache-2.0
"""Start Horovod with its own rendezvous server, for gradients.py and comm.py. As a program, it is that server.

    hvdstart.py RANKS LOCAL...      LOCAL: ranks of each host; prints its port; ends at end of input
"""
import subprocess
import sys


def serve(ranks, sizes):
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.http.http_server import RendezvousServer

    server = RendezvousServer()
    port = server.start()
    server.init(get_host_assignments(parse_hosts(",".join(f"h{k}:{n}" for k, n in enumerate(sizes))), ranks))
    print(port, flush=True)
    sys.stdin.read()
    server.stop()


class Rendezvous:
    """The server in its own process; 'enter': the command prefix to run on the first host."""

    def __init__(self, python, ranks, hosts, address, interface, enter):
        self.ranks, self.address, self.interface = ranks, address, interface
        self.place = [(r * hosts // ranks) for r in range(ranks)]
        sizes = [str(self.place.count(k)) for k in range(hosts)]
        self.server = subprocess.Popen(enter + [python, __file__, str(ranks)] + sizes, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = self.server.stdout.readline().strip()

    def environment(self, rank):
        host = self.place[rank]
        local = rank - self.place.index(host)
        values = {"RANK": rank, "SIZE": self.ranks, "LOCAL_RANK": local, "LOCAL_SIZE": self.place.count(host),
                  "CROSS_RANK": host, "CROSS_SIZE": len(set(self.place)), "HOSTNAME": f"h{host}",
                  "GLOO_RENDEZVOUS_ADDR": self.address, "GLOO_RENDEZVOUS_PORT": self.port,
                  "GLOO_IFACE": self.interface, "CONTROLLER": "gloo",
                  "CPU_OPERATIONS": "gloo", "CACHE_CAPACITY": 8192}
        return {f"HOROVOD_{k}": str(v) for k, v in values.items()}

    def close(self):
        self.server.stdin.close()
        self.server.wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]), [int(n) for n in sys.argv[2:]])
