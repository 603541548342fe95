#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl search-server: the protocol, every searcher, invalid lines.
. "$srcdir/tests/lib.sh"
space='"space":[{"name":"lr","type":"float","low":1e-4,"high":1,"log":true},{"name":"k","type":"int","low":1,"high":64,"log":true},{"name":"act","type":"categorical","choices":["relu",7]}]'

serve () { # serve OPTION... <lines
    timeout 300 dl search-server "$@"
}

out=$(printf '%s\n' "{$space,\"seed\":3,\"budget\":2}" '{"op":"ask"}' '{"op":"ask"}' '{"op":"ask"}' \
    '{"op":"tell","id":0,"value":0.5}' '{"op":"tell","id":1,"value":null}' '{"op":"ask"}' '{"op":"quit"}' 'not read' | serve)
is $? 0 "a session"
like "$(echo "$out" | sed -n 1p)" '^\{"id":0,"params":\{"lr":0\.[0-9]*,"k":[0-9]+,"act":("relu"|7)\}\}$' "a trial"
is "$(echo "$out" | sed -n 3p)" '{"wait":true}' "wait while all are being trained"
is "$(echo "$out" | sed -n 4p)" '{"wait":true,"done":true}' "done"

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
    holds "$s: the same lines, the same answers" cmp -s first second
done

# ---- trials that report step by step: promotion ASHA
out=$(printf '%s\n' "{$space,\"seed\":1,\"max_step\":9}" '{"op":"ask"}' '{"op":"ask"}' '{"op":"ask"}' \
    '{"op":"report","id":0,"step":1,"value":3}' '{"op":"report","id":1,"step":1,"value":2}' '{"op":"report","id":2,"step":1,"value":1}' \
    '{"op":"ask"}' '{"op":"report","id":2,"step":2,"value":1}' '{"op":"report","id":2,"step":3,"value":1}' \
    '{"op":"tell","id":2,"value":1,"seconds":9}' | serve | tail -n +4 | tr '\n' ' ')
is "$out" '{"decision":"pause"} {"decision":"pause"} {"decision":"pause"} {"id":2,"resume":true} {"decision":"continue"} {"decision":"pause"} ' "reports, decisions, promotion"

# ---- the session of dl-search-server(1)
sed -n '/^\.SH PROTOCOL/,/^\.SS/p' "$srcdir/doc/dl-search-server.1" | sed -n '/^\.nf/,/^\.fi/p' | grep -v '^\.' >session
sed -n 's/^< //p' session >wanted
sed '/^< /d; s/^> //' session | awk 'NR > 1 { printf "%s", /^ / ? " " : "\n" } { printf "%s", $0 } END { print "" }' >lines
serve <lines >got 2>&1
is "$(cat got)" "$(cat wanted)" "the session of dl-search-server(1) is correct"
holds "and was found" [ "$(wc -l <wanted)" -gt 6 ]
sed 's/"high"/"hihg"/; q' lines | serve >got 2>&1
like "$(cat got)" "^dl: line 1: layers: $(sed -n "s/^dl: line 1: lr: \(unknown key.*\)/\1/p" "$srcdir/doc/dl-search-server.1" | sed 's/?/\\?/')\$" "so is its error"

# ---- dl-search-server(1) documents every key and operation
sed -n '/^\.SH PROTOCOL/,/^\.SH CUSTOM/p' "$srcdir/doc/dl-search-server.1" >section
for k in $(sed -n 's/^ *{ "\([a-z_]*\)", *FIELD_.*/\1/p' "$srcdir/launcher/cmd/search_server.c" | sort -u); do
    holds "dl-search-server(1) has the key $k" grep -qE "^\.BR? (.* )?$k( |\$)|\"$k\":" section
done
for k in ask tell report reject begin best quit; do
    holds "dl-search-server(1) has $k" grep -q "^.fB{\"op\": \"$k\"" "$srcdir/doc/dl-search-server.1"
done

# ---- whole sessions
if command -v python3 >/dev/null; then
    python3 "$srcdir/tests/launcher/session.py" >checks 2>errors
    while IFS= read -r line; do
        case $line in
        'ok '*) ok 0 "${line#ok }" ;;
        'not ok '*) ok 1 "${line#not ok }" ;;
        *) echo "$line" ;;
        esac
    done <checks
    holds "all checks ran" [ "$(grep -c '^ok' checks)" -gt 35 ]
    is "$(cat errors)" "" "without other output"
else
    skip "whole sessions" "no python3"
fi

# ---- an invalid line: one message with line number and reason, exit status 2
wrong () { # wrong PATTERN NAME: send the file "lines"
    refused 2 "^dl: line [0-9]+: $1" "$2" sh -c 'exec dl search-server <lines 2>&1 >answers'
}
bad () { # bad LINE PATTERN: send LINE after a valid header and a trial
    printf '%s\n' "{$space,\"seed\":1,\"budget\":9}" '{"op":"ask"}' "$1" >lines
    wrong "$2" "$1"
    like "$(cat out)" '^dl: line 3:' "which is the third"
}
bad 'x' "column 1: '\\[' or '\\{' expected near 'x'"
bad '' "column 0: '\\[' or '\\{' expected near end of file"
bad '[]' 'not a JSON object'
bad '3' "column 1: '\\[' or '\\{' expected near '3'"
bad '{"op":"ask"} {"op":"ask"}' "column 14: end of file expected near '\\{'"
bad '{"op":"ask","op":"ask"}' 'column [0-9]+: duplicate object key'
bad '{"op":"tell","id":0,"value":NaN}' 'column [0-9]+: .*NaN.*; use null for a value that is not finite'
bad '{"op":"tell","id":0,"value":Infinity}' 'column [0-9]+: .*Infinity.*; use null for a value that is not finite'
bad '{}' "'op' must be ask, tell, report, reject, begin, best or quit"
bad '{"op":"aks"}' "'op' must be ask, tell, report, reject, begin, best or quit"
bad '{"op":7}' "'op' must be ask"
bad '{"op":"ask","id":0}' "ask: unknown key 'id'"
bad '{"op":"tell","id":0,"value":1,"secconds":1}' "tell: unknown key 'secconds'; did you mean 'seconds'\?"
bad '{"op":"tell","id":1,"value":1}' "'id' is 1, but there is no such trial"
bad '{"op":"tell","id":-1,"value":1}' "tell: 'id' is -1, but must be from 0 to"
bad '{"op":"tell","id":9223372036854775807,"value":1}' "tell: 'id' is 9.22.*, but must be from 0 to"
bad '{"op":"tell","id":1e300,"value":1}' "tell: 'id' is 1e\+300, but must be an integer"
bad '{"op":"tell","id":0.5,"value":1}' "tell: 'id' is 0.5, but must be an integer"
bad '{"op":"tell","id":"0","value":1}' "tell: 'id' is a string, but must be an integer"
bad '{"op":"tell","id":0}' "tell: 'value' is missing"
bad '{"op":"tell","value":0}' "tell: 'id' is missing"
bad '{"op":"tell","id":0,"value":true}' "tell: 'value' must be a number or null"
bad '{"op":"tell","id":0,"value":"1"}' "tell: 'value' must be a number or null"
bad '{"op":"tell","id":0,"value":[1,2]}' "tell: 'value' must be a number or null"
bad '{"op":"tell","id":0,"value":{}}' "tell: 'value' must be a number or null"
bad '{"op":"tell","id":0,"value":1,"seconds":-1}' "tell: 'seconds' is -1, but must be 0 or more"
bad '{"op":"tell","id":0,"value":1,"seconds":"1"}' "tell: 'seconds' is a string, but must be a number"
bad '{"op":"tell","id":0,"value":1e999}' 'column [0-9]+: real number overflow'
bad '{"op":"report","id":5,"step":1,"value":1}' "'id' is 5, but there is no such trial"
bad '{"op":"report","id":0,"value":1}' "report: 'step' is missing"
bad '{"op":"report","id":0,"step":0,"value":1}' "report: 'step' is 0, but must be from 1 to"
bad '{"op":"reject","id":3}' "'id' is 3, but there is no such trial"
bad '{"op":"begin","id":0,"params":{}}' "'id' is 0, but the next is 1"
bad '{"op":"begin","id":1,"params":[]}' "begin: 'params' is a list, but must be an object"
bad '{"op":"begin","id":1,"params":{"lr":0.1,"k":1}}' 'params: a point has a value for each active parameter, and for no other one'
bad '{"op":"begin","id":1,"params":{"lr":0.1,"k":1,"act":"tanh"}}' "params: 'act' has no such value"
bad '{"op":"begin","id":1,"params":{"lr":0.1,"k":1.5,"act":7}}' "params: 'k' cannot be 1.5"
bad '{"op":"begin","id":1,"params":{"lr":2,"k":1,"act":7}}' "params: 'lr' cannot be 2"
bad '{"op":"begin","id":1,"params":{"lr":"2","k":1,"act":7}}' "params: 'lr' has no such value"
bad '{"op":"begin","id":1,"params":{"l\nr":2}}' "params: no parameter 'l\?r'"
for op in tell reject report; do
    printf '%s\n' "{$space}" '{"op":"ask"}' '{"op":"tell","id":0,"value":1}' "{\"op\":\"$op\",\"id\":0$(
        case $op in tell) echo ',"value":1' ;; report) echo ',"value":1,"step":1' ;; esac)}" >lines
    wrong 'the trial is not being trained' "$op after the end"
done
for how in '"repeats":2' '"max_step":9'; do
    printf '%s\n' "{$space,$how}" '{"op":"begin","id":0,"params":{"lr":0.1,"k":1,"act":7}}' >lines
    wrong '(begin and .repeats. cannot|the searcher would not start this trial)' "begin with $how"
done
printf '%s\n' "{$space,\"budget\":1}" '{"op":"ask"}' '{"op":"begin","id":1,"params":{"lr":0.1,"k":1,"act":7}}' >lines
wrong 'the searcher would not start this trial' "begin beyond the budget"
printf '%s\n' "{$space,\"direction\":[\"minimize\",\"maximize\"]}" '{"op":"ask"}' '{"op":"tell","id":0,"value":1}' >lines
wrong "tell: 'value' must be a list of 2 numbers, or null" "one value for two objectives"

# ---- mistakes in the header
first () { # first LINE PATTERN
    echo "$1" >lines
    wrong "$2" "$(echo "$1" | cut -c 1-70 | sed "s/^{$(echo "$space" | sed 's/[][]/\\&/g'),/.../")"
}
with () { # with KEYS PATTERN: add KEYS to a valid space
    first "{$space,$1}" "$2"
}
param () { # param KEYS PATTERN: a space with one parameter x
    first "{\"space\":[{\"name\":\"x\",$1}]}" "$2"
}
first '{}' "'space' is missing"
first '{"space":[]}' "'space' is empty"
first '{"space":{}}' "'space' is an object, but must be a list"
first '{"space":[3]}' "'space' must be a list of objects, each with a 'name'"
first '{"space":[{"name":3,"type":"int"}]}' "'space' must be a list of objects, each with a 'name'"
first '{"op":"ask"}' "unknown key 'op'"
param '"type":"flaot"' "x: 'type' must be float, int or categorical"
param '"type":"float","low":2,"high":1' "x: 'low' is above 'high'"
param '"type":"float","low":0,"high":1,"log":true' "x: 'log' needs a 'low' above 0"
param '"type":"float","low":0,"high":1,"log":1' "x: 'log' is 1, but must be true or false"
param '"type":"float","low":"a","high":1' "x: 'low' is a string, but must be a number"
param '"type":"float","high":1' "x: 'low' is missing"
param '"type":"float","low":null,"high":1' "x: 'low' is null, but must be a number"
param '"type":"float","low":-1e308,"high":1e308' "x: max - min is not a finite number"
param '"type":"int","low":0,"high":1e300' "x: min or max is beyond 2\^53"
param '"type":"int","low":0.5,"high":3' "x: min or max is not an integer"
param '"type":"int","low":0,"high":3,"step":0.5' "x: step is not an integer"
param '"type":"float","low":0,"high":3,"step":-1' "x: 'step' is -1, but must be 0 or more"
param '"type":"float","low":0,"high":3,"step":4' "x: step is above max - min"
param '"type":"float","low":0,"high":3,"count":1e300' "x: 'count' is 1e\+300, but must be an integer"
param '"type":"float","low":0,"high":3,"count":-1' "x: 'count' is -1, but must be from 0 to"
param '"type":"float","low":0,"high":3,"mean":1' "x: 'mean' needs a 'deviation' above 0"
param '"type":"float","low":0,"high":3,"mean":4,"deviation":1' "x: mean is not between min and max"
param '"type":"float","low":0,"high":3,"devation":1' "x: unknown key 'devation'; did you mean 'deviation'\?"
param '"type":"float","low":0,"high":3,"choices":[1]' "x: unknown key 'choices'"
param '"type":"categorical","choices":[]' 'x: no choices'
param '"type":"categorical","choices":{}' "x: 'choices' is an object, but must be a list"
param '"type":"categorical"' "x: 'choices' is missing"
param '"type":"categorical","choices":[1,"1"]' "x: 'choices' has 1 twice"
param '"type":"int","low":0,"high":3,"when":[]' "x: 'when' is a list, but must be an object"
param '"type":"int","low":0,"high":3,"when":{}' "x: 'when' must name one other parameter"
param '"type":"int","low":0,"high":3,"when":{"y":1}' 'x: when: no such parameter'
param '"type":"int","low":0,"high":3,"when":{"x":1}' 'x: when: the parameters wait for each other'
with '"space":[]' 'column [0-9]+: duplicate object key'
first '{"space":[{"name":"x","type":"int","low":0,"high":3},{"name":"x","type":"int","low":0,"high":3}]}' 'x: another parameter has the same name'
first '{"space":[{"name":"a","type":"int","low":0,"high":3},{"name":"x","type":"int","low":0,"high":3,"when":{"a":4}}]}' 'x: when: the other parameter never has this value'
with '"budgte":3' "unknown key 'budgte'; did you mean 'budget'\?"
with '"budget":-1' "'budget' is -1, but must be from 0 to"
with '"budget":1e300' "'budget' is 1e\+300, but must be from 0 to"
with '"max_trials":0' 'searcher: max_trials is below 1'
with '"seed":-1' "'seed' is -1, but must be from 0 to"
with '"seed":1e300' "'seed' is 1e\+300, but must be an integer"
with '"seed":18446744073709551616' 'column [0-9]+: too big integer'
with '"searcher":"tep"' "unknown searcher 'tep'; did you mean 'tpe'\?"
with '"searcher":"custom"' "unknown searcher 'custom'"
with '"searcher":["tpe"]' "'searcher' is a list, but must be a string"
with '"sampler":"tep"' "unknown sampler 'tep'; did you mean 'tpe'\?"
with '"sampler":"asha"' 'searcher: the sampler must be a searcher of full trainings'
with '"searcher":"grid"' 'lr: .*count'
with '"mode":"slow"' "'mode' must be aggressive, standard or conservative"
with '"direction":"up"' "'direction' must be \"minimize\" or \"maximize\""
with '"direction":[]' "'direction' has 1 to 8 objectives"
with '"direction":["minimize","up"]' "'direction' must be"
with '"direction":["minimize","minimize"],"searcher":"cmaes"' 'searcher: this searcher takes one metric only'
with '"max_step":0' "'max_step' is 0, but must be from 1 to"
with '"max_step":2.5' "'max_step' is 2.5, but must be an integer"
with '"max_step":9,"divisor":1' 'searcher: divisor'
with '"max_step":9,"confirm":true' "'confirm' needs full trainings that are not repeated"
with '"repeats":-1' "'repeats' is -1, but must be from 0 to 64"
with '"repeats":2,"searcher":"median"' 'searcher: this searcher cannot repeat a trial'
with '"max_seconds":-1' "'max_seconds' is -1, but must be 0 or more"
with '"cost_aware":0' "'cost_aware' is 0, but must be true or false"
with '"population":100001' "'population' is 100001, but must be from 0 to 100000"
with '"constraint":3' "'constraint' is 3, but must be a string"
with '"constraint":"lr < "' 'constraint: column 6: '
with '"constraint":"lr < momentum"' 'constraint: column 6: '
with '"constraint":"lr > 2"' 'searcher: fewer than 10 of 20000 random points'
with '"points":{}' "'points' is an object, but must be a list"
with '"points":[3]' 'points: a point must be an object'
with '"points":[{"lr":1,"k":3,"act":7},{"lr":5,"k":3,"act":7}]' "point 2: 'lr' cannot be 5"
with '"points":[{"lr":1,"k":3}]' 'point: a point has a value for each active parameter, and for no other one'
with '"points":[{"lr":1,"k":3,"act":7}],"constraint":"k > 3"' 'searcher: the constraint forbids a point to try first'
with '"points":[{"lr":1,"k":3,"act":7},{"lr":1,"k":2,"act":7}],"searcher":"single"' 'searcher: this searcher has points of its own'
with '"known":[{}]' "known: 'params' is missing"
with '"known":[3]' 'known: a list of objects'
with '"known":[{"params":{"lr":1,"k":3,"act":7}}]' "known: 'value' is missing"
with '"known":[{"params":{"lr":1,"k":3,"act":7},"value":"1"}]' "known: 'value' must be a number or null"
with '"known":[{"params":{"lr":1,"k":3,"act":8},"value":1}]' "known: 'act' has no such value"
with '"known":[{"params":{"lr":1,"k":0,"act":7},"value":1}]' "known: 'k' cannot be 0"

# ---- hostile lines
printf '{"op":"ask"}\0\n' >lines
wrong 'a NUL byte' "a NUL byte"
printf '{"op":"\377"}\n' >lines
wrong 'column [0-9]+: unable to decode byte 0xff' "invalid UTF-8"
printf '{"op":"\001"}\n' >lines
wrong 'column [0-9]+: control character 0x1' "a control character"
head -c 100000 /dev/zero | tr '\0' '[' >lines
wrong 'column [0-9]+: maximum parsing depth reached' "100000 brackets"
deep=$(head -c 1000 /dev/zero | tr '\0' '[')$(head -c 1000 /dev/zero | tr '\0' ']')
with "\"points\":$deep" 'points: a point must be an object'
{ printf '{"%s' "$space"; head -c 2000000 /dev/zero | tr '\0' 'x'; } >lines
wrong "column [0-9]+: " "2 MB without an end"
{ printf '{"'; head -c 2000000 /dev/zero | tr '\0' 'x'; echo '":1}'; } >lines
wrong "unknown key 'x{60}'" "a key of 2 MB"
{ printf '{"space":[{"name":"x","type":"categorical","choices":["'; head -c 2000000 /dev/zero | tr '\0' 'x'; echo '",1]}]}'; echo '{"op":"quit"}'; } | serve >out 2>&1
is "$?$(cat out)" 0 "a choice of 2 MB"
printf '%s\n' "{\"space\":[{\"name\":\"x\",\"type\":\"categorical\",\"choices\":[$deep,1]}],\"searcher\":\"grid\"}" '{"op":"ask"}' | serve >out 2>&1
is "$(cat out)" "{\"id\":0,\"params\":{\"x\":$deep}}" "a choice 1000 deep"

# ---- end of input
serve </dev/null
is $? 0 "no line at all"
printf '%s' "{$space}" | serve
is $? 0 "no end of line"
serve <"$work" >out 2>&1
is "$?$(cat out)" "7dl: line 0: cannot read: Is a directory" "unreadable input"
if [ -c /dev/full ]; then
    printf '%s\n' "{$space}" '{"op":"ask"}' '{"op":"ask"}' | serve 2>err >/dev/full
    is "$?$(cat err)" "7dl: cannot write the answer" "a full disk"
fi
done_testing
