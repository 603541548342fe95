#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl search-server: the protocol, every searcher behind it, bad lines
. "$srcdir/tests/lib.sh"
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
space='"space":[{"name":"lr","type":"float","low":1e-4,"high":1,"log":true},{"name":"k","type":"int","low":1,"high":64,"log":true},{"name":"act","type":"categorical","choices":["relu",7]}]'

serve () { # serve OPTION... <lines
    timeout 20 dl search-server "$@"
}

out=$(printf '%s\n' "{$space,\"seed\":3,\"budget\":2}" '{"op":"ask"}' '{"op":"ask"}' '{"op":"ask"}' \
    '{"op":"tell","id":0,"value":0.5}' '{"op":"tell","id":1,"value":null}' '{"op":"ask"}' '{"op":"quit"}' | serve)
is $? 0 "a session"
like "$(echo "$out" | sed -n 1p)" '^\{"id":0,"params":\{"lr":0\.[0-9]*,"k":[0-9]+,"act":("relu"|7)\}\}$' "a trial"
like "$(echo "$out" | sed -n 3p)" '"wait":true' "wait while all are being trained"
like "$(echo "$out" | sed -n 4p)" '"done":true' "done"

for s in random sobol lhs tpe gp; do
    { echo "{$space,\"seed\":1,\"budget\":30,\"searcher\":\"$s\"}"
      i=0
      while [ $i -lt 30 ]; do
          echo '{"op":"ask"}'
          echo "{\"op\":\"tell\",\"id\":$i,\"value\":$((i * 7 % 11))}"
          i=$((i + 1))
      done; } >lines
    serve <lines >first && serve --searcher="$s" <lines >second
    is "$(grep -c params first)" 30 "$s: 30 trials"
    cmp -s first second
    ok $? "$s: the same lines, the same answers"
done

# ---- by steps: promotion ASHA
out=$(printf '%s\n' "{$space,\"seed\":1,\"max_step\":9}" '{"op":"ask"}' '{"op":"ask"}' '{"op":"ask"}' \
    '{"op":"report","id":0,"step":1,"value":3}' '{"op":"report","id":1,"step":1,"value":2}' '{"op":"report","id":2,"step":1,"value":1}' \
    '{"op":"ask"}' '{"op":"report","id":2,"step":2,"value":1}' '{"op":"report","id":2,"step":3,"value":1}' | serve | tail -n +4 | tr '\n' ' ')
is "$out" '{"decision":"pause"} {"decision":"pause"} {"decision":"pause"} {"id":2,"resume":true} {"decision":"continue"} {"decision":"pause"} ' "reports, decisions, promotion"

# ---- mistakes: one line, with its number, and status 2
bad () { # bad LINE PATTERN: after a good first line
    out=$(printf '%s\n' "{$space}" "$1" | serve 2>&1 >/dev/null)
    is $? 2 "refused: $1"
    like "$out" "^dl: line 2: .*$2" "and why"
}
bad 'x' 'JSON|expected|invalid'
bad '[]' 'expected|not a JSON object'
bad '{"op":"aks"}' 'must be ask, tell, report or quit'
bad '{"op":"tell","id":0,"value":1}' 'not being trained'
bad '{"op":"tell","id":-1,"value":1}' 'not one of a trial'
bad '{"op":"report","id":5,"step":1,"value":1}' 'not being trained'
for first in '{}' '{"space":[]}' '{"space":[{"name":"x","type":"float","low":2,"high":1}]}' '{"space":[{"name":"x","type":"flaot"}]}' \
    '{"space":[{"name":"x","type":"float","low":0,"high":1,"log":true}]}' '{"space":[{"name":"x","type":"categorical","choices":[]}]}'; do
    echo "$first" | serve >/dev/null 2>err
    is $? 2 "refused: $first"
    like "$(cat err)" '^dl: line 1: search-server: ' "and why"
done
echo "{$space}" | serve --searcher=tep >/dev/null 2>err
like "$(cat err)" 'unknown searcher' "an unknown searcher"
serve </dev/null
is $? 0 "no line at all"
done_testing
