#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Searcher "custom": a program of the user chooses the points.
. "$srcdir/tests/lib.sh"
command -v python3 >/dev/null || skip_all "no python3"

# ---- a random searcher that records every line it gets
cat >random_search.py <<'END'
import json, math, os, random, sys

header = json.loads(sys.stdin.readline())
note = open(f"told.{os.getpid()}", "w")
print(json.dumps(header), file=note)
rng = random.Random(header["seed"])

def draw(p):
    if p["type"] == "categorical":
        return rng.choice(p["choices"])
    if p["type"] == "int":
        return rng.randint(p["low"], p["high"])
    if p.get("log"):
        return math.exp(rng.uniform(math.log(p["low"]), math.log(p["high"])))
    return rng.uniform(p["low"], p["high"])

for line in sys.stdin:
    print(line, end="", file=note, flush=True)
    op = json.loads(line)["op"]
    if op == "ask":
        print(json.dumps({"params": {p["name"]: draw(p) for p in header["space"]}}), flush=True)
    elif op == "quit":
        break
END

# conf NAME COMMAND [MAX_TRIALS [ENTRYPOINT]]
conf () {
    cat >"$1.conf" <<END
name = "$1";
entrypoint = "${4:-dl log loss=\$DL_HP_lr}";
searcher = { name = "custom"; metric = "loss"; max_trials = ${3:-6}; max_length = 2; command = "$2"; };
hyperparameters = {
    lr = { type = "log"; minval = -3; maxval = 0; };
    n = { type = "int"; minval = 2; maxval = 5; };
    opt = { name = { type = "categorical"; vals = ["sgd", "adam"]; };
            momentum = { type = "float"; minval = 0.5; maxval = 0.9;
                         when = { opt = { name = "sgd"; }; }; }; };
    constant = 7;
};
resources = { workers = 2; };
max_restarts = 0;
reproducibility = { experiment_seed = 5; };
worker = { heartbeat = 1; lease = 60; grace = 3; };
END
}

conf random 'exec python3 random_search.py' 6 '[ $DL_TRIAL != 2 ] && dl log loss=$DL_HP_lr'
runs 0 "a random searcher in Python" dl run --local random.conf
is "$(count random-0001 begin) $(count random-0001 result)" "6 5" "six trials, one of which failed"
holds "each worker has its own process" [ "$(ls told.* | wc -l)" -ge 2 ]
python3 - told.* >out 2>&1 <<'END'
import glob, json, sys
trials, last = {}, {}
for path in sorted(glob.glob("random-0001/log/0*/0*")):
    for line in open(path):
        e = json.loads(line)
        if e.get("op") == "begin":
            trials[e["trial"]] = e["hparams"]
        if e.get("op") in ("result", "exit"):
            last[e["trial"]] = e.get("metric")
for path in sys.argv[1:]:
    header, *lines = map(json.loads, open(path))
    assert header["direction"] == "minimize" and header["seed"] == 5
    assert header["budget"] == 6 and header["workers"] == 2, header
    space = {p["name"]: p for p in header["space"]}
    assert sorted(space) == ["lr", "n", "opt.momentum", "opt.name"], space
    assert space["lr"] == {"name": "lr", "type": "float", "low": 0.001, "high": 1, "log": True}
    assert space["n"] == {"name": "n", "type": "int", "low": 2, "high": 5}
    assert space["opt.momentum"]["when"] == {"opt.name": ["sgd"]}
    begun, told = set(), set()
    for e in lines:
        if e["op"] == "begin":
            h = trials[e["id"] + 1]
            assert e["id"] not in begun and e["params"]["lr"] == h["lr"]
            assert e["params"].get("opt.momentum") == h["opt"].get("momentum")
            begun.add(e["id"])
        elif e["op"] == "tell":
            assert e["id"] in begun and e["id"] not in told
            assert e["value"] == last[e["id"] + 1], e
            told.add(e["id"])
    # a process that starts at the very end gets no lines
    some = globals().get("some") or bool(begun)
assert some
END
is "$?$(cat out)" 0 "it gets all trials and results, in order, once"

# ---- wait and done
cat >few.py <<'END'
import json, sys
sys.stdin.readline()
open_trials, n = set(), 0
for line in sys.stdin:
    e = json.loads(line)
    if e["op"] == "begin":
        open_trials.add(e["id"]); n += 1
    elif e["op"] == "tell":
        open_trials.discard(e["id"])
    elif e["op"] == "ask" and n >= 3:
        print('{"done": true}', flush=True)
    elif e["op"] == "ask" and open_trials:
        print('{"wait": true}', flush=True)
    elif e["op"] == "ask":
        print('{"params": {"lr": 1, "n": 2, "opt.name": "adam", "opt.momentum": null}}', flush=True)
END
conf few 'python3 few.py' 50 'sleep 0.3; dl log loss=1'
runs 0 "a searcher that waits and ends" dl run --local few.conf
# Two workers may get the same answer at the same time, and then begin one trial more.
like "$(count few-0001 begin) $(count few-0001 result) $(count few-0001 end)" '^([34]) \1 1$' "one trial at a time, three in all"

# ---- dl search-server works as such a program
conf sobol 'dl search-server --searcher=sobol' 24
sed -i 's/workers = 2/workers = 4/' sobol.conf
timeout 300 dl run --local sobol.conf >out 2>&1
is "$? $(grep -h '"op":"begin"' sobol-0001/log/0*/0* | grep -o '"x":[^]]*' | sort -u | wc -l)" "0 24" "four workers train no point twice"
conf server 'dl search-server --searcher=tpe' 14
runs 0 "dl search-server as the searcher" dl run --local server.conf
is "$(count server-0001 begin) $(count server-0001 result)" "14 14" "all trials are its own"
conf repeated 'dl search-server' 3
sed -i 's/max_trials = 3;/max_trials = 3; repeats = 2;/' repeated.conf
runs 0 "dl search-server with repeats" dl run --local repeated.conf
is "$(count repeated-0001 begin) $(count repeated-0001 result)" "6 6" "and all trials"

# ---- mistake NAME COMMAND ERROR [SECONDS]: expect dl run to report this error
mistake () {
    conf "$1" "$2"
    runs 8 "$1: no worker is left" env "DL_COMMAND_TIMEOUT=${4:-200}" dl run --local "$1.conf"
    like "$(cat "$1"-0001/workers/*.log)" "^dl: searcher.command: $3" "$1: and says why"
    is "$(grep -hc '^dl:' "$1"-0001/workers/*-1.log)" 1 "$1: in one line"
    like "$(cat out)" "^dl: no worker is left: a worker ended early: searcher.command: $3" "$1: so does dl run"
}
mistake dies 'read line; exit 3' 'it ended before it answered: exit status 3'
mistake absent 'nosuchprogram' 'it ended before it answered: exit status 127'
mistake nonsense 'read line; echo hello; sleep 300' 'invalid answer: hello'
mistake slow 'sleep 300' 'it gave no answer in time' 1
point () { echo "read line; echo '{\\\"params\\\": {$1}}'; sleep 300" | sed 's/"\([a-z.]*\)"/\\"\1\\"/g'; }
mistake outside "$(point '"lr": 5, "n": 2, "opt.name": "adam"')" 'its point is outside the space: lr'
mistake noint "$(point '"lr": 1, "n": 2.5, "opt.name": "adam"')" 'its point is outside the space: n'
mistake missing "$(point '"lr": 1, "n": 2, "opt.name": "sgd"')" 'its point has no value for opt.momentum'
mistake unknown "$(point '"lr": 1, "n": 2, "opt.name": "adam", "constant": 7')" 'its point has a value for unknown constant'

# ---- nothing is lost
cat >mortal.py <<'END'
import json, os, sys
sys.stdin.readline()
n = 0
for line in sys.stdin:
    e = json.loads(line)
    n += e["op"] == "begin"
    if e["op"] == "ask":
        if n >= 2 and not os.path.exists("fixed"):
            os._exit(1)
        print(json.dumps({"params": {"lr": 0.5, "n": 3, "opt.name": "adam"}}), flush=True)
END
conf mortal 'python3 mortal.py' 4
runs 8 "a searcher that dies after two trials" dl run --local mortal.conf
touch fixed
runs 0 "it is fixed, and resumed" dl resume --local mortal
is "$(count mortal-0001 begin) $(count mortal-0001 result)" "4 4" "no trial was lost or trained twice"

# ---- a stop while the program thinks
nap=400.$$
conf think "sleep $nap"
timeout 300 dl run --local think.conf >out 2>&1 &
pid=$!
wait_for 300 pgrep -f "^sleep $nap"
kill -INT $pid
start=$(date +%s)
wait $pid
[ $(($(date +%s) - start)) -lt 200 ]
ok $? "a worker that waits for it obeys a stop"
! pgrep -f "^sleep $nap" >/dev/null
ok $? "and stops it, too"
done_testing
