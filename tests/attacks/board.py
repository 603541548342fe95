# SPDX-License-Identifier: Apache-2.0
"""board.py COMMAND ...: attack the process next to srun that has rank 0's address, or impersonate it.

    squat FIRST-LAST             listen at each of these ports
    ask PORT TOKEN WORDS...      send a request, and print the answer
    long PORT BYTES              send a line of so many bytes without an end
    lie HOW                      answer each request with a failure, an address, garbage, or silence
"""
import resource
import socket
import sys
import threading
import time

WORDS = "!\033]0;owned\007owned"


def say(port, line):
    s = socket.create_connection(("127.0.0.1", int(port)), 20)
    s.sendall(line)
    return s


def heard(s):
    try:
        return s.recv(65536).decode("latin-1").rstrip("\n")
    except OSError:
        return ""


def squat(ports):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    first, last = map(int, ports.split("-"))
    held = []
    for port in range(first, last + 1):
        s = socket.socket(socket.AF_INET6)
        try:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            s.bind(("::", port))
            s.listen(8)
            held.append(s)
        except OSError:
            s.close()
    print("holds", len(held), flush=True)
    time.sleep(600)


def ask(port, token, *words):
    print(heard(say(port, " ".join((token,) + words).encode() + b"\n")))


def long(port, size):
    s = say(port, b"")
    try:
        for _ in range(int(size) // 1000):
            s.sendall(b"x" * 1000)
        print("read" if s.recv(1) else "closed")
    except OSError:
        print("closed")


def lie(how):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(64)
    print("port", s.getsockname()[1], flush=True)

    def serve(c):
        c.settimeout(20)
        try:
            c.recv(65536)
            if how == "failure":
                c.sendall(b"0" * 32 + b" " + WORDS.encode() + b"\n")
            elif how == "address":
                c.sendall(b"0" * 32 + b" 9/-/?/127.0.0.1\n")
            elif how == "garbage":
                c.sendall(b"\xff" * 100000)
            time.sleep(0 if how != "silence" else 15)
        except OSError:
            pass
        c.close()

    while True:
        threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    {f.__name__: f for f in (squat, ask, long, lie)}[sys.argv[1]](*sys.argv[2:])
