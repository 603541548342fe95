#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl horovod: the rendezvous of Horovod's ranks, its end, bad requests
. "$srcdir/tests/lib.sh"
export PATH="$builddir/launcher:$PATH"
client=$srcdir/tests/launcher/horovod.py
port=$((21000 + $$ % 5000))
cd "$work" || exit 1

# rank RANK SIZE LOCAL_RANK LOCAL_SIZE CROSS_RANK CROSS_SIZE HOST COMMAND...
rank () {
    HOROVOD_RANK=$1 HOROVOD_SIZE=$2 HOROVOD_LOCAL_RANK=$3 HOROVOD_LOCAL_SIZE=$4 HOROVOD_CROSS_RANK=$5 \
        HOROVOD_CROSS_SIZE=$6 HOROVOD_HOSTNAME=$7 HOROVOD_GLOO_RENDEZVOUS_ADDR=127.0.0.1 \
        HOROVOD_GLOO_RENDEZVOUS_PORT=$port
    export HOROVOD_RANK HOROVOD_SIZE HOROVOD_LOCAL_RANK HOROVOD_LOCAL_SIZE HOROVOD_CROSS_RANK HOROVOD_CROSS_SIZE \
        HOROVOD_HOSTNAME HOROVOD_GLOO_RENDEZVOUS_ADDR HOROVOD_GLOO_RENDEZVOUS_PORT
    shift 7
    exec timeout 300 "$@"
}

# two ranks on n1, one on n2
(rank 0 3 0 2 0 2 n1 dl horovod /usr/bin/python3 "$client" 3) >rank0 2>&1 &
first=$!
sleep 0.3
(rank 1 3 1 2 0 1 n1 dl horovod /usr/bin/python3 "$client" 3) >rank1 2>&1 &
(rank 2 3 0 1 1 2 n2 dl horovod /usr/bin/python3 "$client" 3) >rank2 2>&1 &
wait $first
is $? 0 "rank 0 ends well"
wait
is "$(cat rank0 rank1 rank2)" "0 0+1+2 0+1 0+2
1 0+1+2 0+1 1
2 0+1+2 2 0+2" "three ranks meet in their scopes, three times"
(rank 0 1 0 1 0 1 n1 dl horovod /usr/bin/python3 "$client" 2 1000000) >rank0 2>&1
is "$(cat rank0)" "0 0 0 0" "values of a megabyte"

# ---- ends
(rank 0 1 0 1 0 1 n1 dl horovod sh -c 'exit 7')
is $? 7 "the program's status"
(rank 0 1 0 1 0 1 n1 dl horovod sh -c 'kill -USR2 $$')
is $? 140 "the program's signal"
(rank 0 1 0 1 0 1 n1 dl horovod /nonexistent) 2>err
is $? 127 "no such program"
like "$(cat err)" '^dl: /nonexistent: No such file' "and why"
is "$( (rank 0 1 0 1 0 1 n1 dl horovod echo --dir -x --help) )" "--dir -x --help" "what follows is for the program"
is "$( (rank 1 2 0 1 0 1 n1 dl horovod sh -c 'ls /proc/$PPID/task/*/children >/dev/null; echo $0' a) )" a "another rank is started as it is"
dl horovod true 2>err
is $? 2 "without --dl=horovod it is refused"
like "$(cat err)" 'srun --dl=horovod' "and why"
/usr/bin/python3 -c 'import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); time.sleep(3)' $port &
sleep 0.5
(rank 0 1 0 1 0 1 n1 dl horovod true) 2>err
[ $? -ne 0 ]
ok $? "a port in use"
like "$(cat err)" "cannot listen on 127.0.0.1 port $port: Address already in use" "and why"
wait

# ---- what is no request, and much of it
cat >bad.py <<'END2'
import os, random, socket, http.client
port = int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
def send(data, close=False):
    s = socket.create_connection(("127.0.0.1", port), 20)
    try:
        s.sendall(data)
        return b"" if close else s.recv(100)
    except OSError:
        return b"reset"
    finally:
        s.close()
def status(data):
    return send(data).split()[1].decode() if data else ""
print(status(b"GET /a HTTP/1.1\r\n\r\n"), status(b"GET /a/b/c HTTP/1.1\r\n\r\n"), status(b"POST /a/b HTTP/1.1\r\n\r\n"),
      status(b"GET /" + b"x" * 300 + b"/b HTTP/1.1\r\n\r\n"), status(b"PUT /a/b HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n"),
      status(b"PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), status(b"\0\r\n\r\n"), status(b"GET /a/b HTTP/1.1\r\n\r\n"))
rng = random.Random(1)
words = [b"GET ", b"PUT ", b"DELETE ", b"/", b"a", b"/0", b" HTTP/1.1", b"\r\n", b"\r\n\r\n", b"Content-Length: ", b"3", b"\0", b"\xff", b"x" * 500]
for _ in range(3000):
    send(b"".join(rng.choice(words) for _ in range(rng.randrange(30))), close=True)
idle = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(200)]
send(b"G" * 100000)
c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
c.request("PUT", "/s/0", b"value")
assert c.getresponse().status == 200
c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
c.request("GET", "/s/0")
print(c.getresponse().read().decode())
END2
is "$( (rank 0 1 0 1 0 1 n1 dl horovod /usr/bin/python3 bad.py) 2>&1 | tr '\n' ' ')" "400 400 501 400 400 400 400 404 value " "3,000 bad requests, 200 idle clients"
done_testing
