# SPDX-License-Identifier: Apache-2.0
"""relay.py HOW [PORT TO]: a man in the middle between ranks, without their key.

Listen at a port of 127.0.0.0/8 and print it, or listen at PORT of ::1.  Forward connections to the port that onpath.c has put
into the address, or to TO, and print a line "hit" for each manipulation:

    none        change nothing
    sums        replace a number that is reduced by 666
    again       repeat a message between two ranks
    host        change the host name that a rank sends to rank 0
    named       change a byte of a message between the threads of named tensors
    plain       set the flag "no tags" in both directions
"""
import re
import select
import socket
import struct
import sys
import threading

# a message of 8 bytes between two ranks: header, tag (if any), and a small number
NUMBER = re.compile(rb"(SDLM.{4}\x08\0{7})((?:.{16})?)([\x01-\x09]\0{7})", re.S)
HELLO, CHALLENGE = 60, 84


class Way:
    """One direction of a connection."""

    def __init__(self, how, calls):
        self.how, self.calls, self.passed, self.done = how, calls, 0, False

    def change(self, data):
        return getattr(self, self.how)(data)

    def none(self, data):
        return data

    def sums(self, data):
        return NUMBER.sub(lambda m: m.group(1) + m.group(2) + struct.pack("=q", 666), data)

    def again(self, data):
        found = NUMBER.search(data)
        if self.done or not found:
            return data
        self.done = True
        return data[: found.start()] + data[found.start() :] + data[found.start() :]

    def host(self, data):
        return data.replace(b"victims-own-host", b"VICTIMS-OWN-HOST") if self.passed > 300 else data

    def named(self, data):
        # after the handshake: packets that start with a small length, unlike messages, which have a header of 16 bytes
        if not self.done and self.passed > 200 and len(data) > 5 and data[:4] != b"SDLM" and data[4:8] != b"1cld" and data[1:4] == b"\0\0\0":
            self.done = True
            return data[:-1] + bytes([data[-1] ^ 1])
        return data

    def plain(self, data):
        at = 8 if self.calls else 0
        if self.passed or len(data) < at + 4:
            return data
        return data[:at] + bytes([data[at] | 2]) + data[at + 1 :]


def serve(a, b, how):
    ways = {a: (b, Way(how, True)), b: (a, Way(how, False))}
    try:
        while True:
            for s in select.select([a, b], [], [], 100)[0]:
                to, way = ways[s]
                data = s.recv(1 << 20)
                if not data:
                    return
                sent = way.change(data)
                if sent != data:
                    print("hit", flush=True)
                way.passed += len(data)
                to.sendall(sent)
    except OSError:
        pass
    finally:
        a.close()
        b.close()


def main():
    how = sys.argv[1]
    if len(sys.argv) > 2:
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(("::1", int(sys.argv[2])))
    else:
        listener = socket.socket()
        listener.bind(("0.0.0.0", 0))
    listener.listen(64)
    print("port", listener.getsockname()[1], flush=True)
    while True:
        a, _ = listener.accept()
        if len(sys.argv) > 2:
            print("hit", flush=True)
            to = int(sys.argv[3])
        else:
            at = socket.inet_aton(a.getsockname()[0])
            to = at[2] << 8 | at[3]
        try:
            b = socket.create_connection(("127.0.0.1", to), 10)
        except OSError:
            a.close()
            continue
        a.settimeout(100)
        b.settimeout(100)
        threading.Thread(target=serve, args=(a, b, how), daemon=True).start()


main()
