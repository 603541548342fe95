#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other users' data reach a terminal without control characters, and a spreadsheet without formulas.
. "$srcdir/tests/lib.sh"
command -v script >/dev/null || skip_all "no script(1)"
export LC_ALL=C.UTF-8

# A window title, BEL, clear screen, a C1 control, an invalid byte, DEL, colors, a bidirectional override, carriage returns.
cat >evil.sh <<'END'
printf '\033]0;title\007 \033[2J\033[1A \302\233 \377 \177 \033[31mred\033[0m \303\244\n'
printf 'a\342\200\256b\342\201\246c\n'
printf '100%%|progress\rover\r\n\033[32mgreen to the end\nplain\n'
echo loss=1
END
cat >e.conf <<'END'
name = "e"; entrypoint = "sh ../../../../evil.sh";
metrics = { pattern = "loss={loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 1; max_length = 1; };
hyperparameters = { x = { type = "categorical"; vals = ["=cmd|' /C calc'!A0"]; }; y = { type = "categorical"; vals = ["+1+1"]; };
    z = { type = "categorical"; vals = ["-9", "-8"]; }; w = { type = "categorical"; vals = ["@SUM(1)"]; };
    v = { type = "categorical"; vals = ["plain"]; }; u = { type = "double"; minval = -3.0; maxval = -2.0; }; };
resources = { workers = 1; };
END
sed -i "s,sh ../../../../evil.sh,sh $work/evil.sh," e.conf
timeout 300 dl run --local e.conf >run.out 2>&1 || sed 's/^/# /' run.out
like "$(dl ls 2>&1)" '^e-0001 +completed' "the experiment completes"
exp="e-0001"

on_terminal () { # on_terminal COMMAND: print what the terminal gets, without carriage returns
    timeout 100 script -qec "$1" /dev/null </dev/null 2>&1 | tr -d '\r'
}
controls () { # controls <TEXT: count control characters, except newlines and tabs
    perl -CI -ne 'BEGIN { $n = 0 } $n++ while /[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}]/g; END { print $n }'
}

on_terminal "dl logs $exp 1" >logs
is "$(sed 's/\x1b\[[0-9;]*m//g' logs | controls)" 0 "dl logs: no control characters except colours"
like "$(cat logs)" '\\x1b\]0;title\\x07 \\x1b\[2J\\x1b\[1A \\xc2\\x9b \\xff \\x7f' "they are printed visibly"
like "$(cat logs)" 'a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c' "the order of characters does not change"
like "$(cat logs)" "$(printf '\033\\[31mred\033\\[0m ä')" "colours are kept"
is "$(grep -c '^over$' logs)" 1 "a carriage return begins a line"
is "$(grep -c "$(printf 'green to the end\033\\[0m$')" logs)" 1 "a colour ends with its line"
dl logs $exp 1 >raw
is "$(cmp raw $exp/trials/0001/a.1/log && echo same)" same "a pipe or a file gets the raw output"

# labels, hosts, reasons and names in log entries that another user may have written
PYTHONPATH=$srcdir/tests/faults python3 - "$exp" <<'END' || bail_out "the log cannot be extended"
import glob, json, sys
from replay import xxh64
evil = "v\033[2J\033]0;title\007\u009b31m\x7f"
for event in ({"op": "exclude", "host": "h1", "why": "r" + evil}, {"op": "label", "label": "l" + evil}):
    last = max(glob.glob(sys.argv[1] + "/log/0*/0*"))
    line = json.dumps({"op": event.pop("op"), "time": 1795373240.2, "by": "b" + evil, **event}).encode() + b"\n"
    path = last[:-8] + "%08d" % (int(last[-8:]) + 1)
    open(path, "wb").write(line + b'{"xxh64": "%016x"}\n' % xxh64(line))
END
for command in "ls" "show $exp" "show $exp 1" "wait $exp" "label $exp new" "watch $exp" "best $exp" "failures $exp" "compare $exp $exp" "plot $exp" "preview e.conf" "ckpt ls $exp" "nonsense$(printf '\033[2J')"; do
    on_terminal "NO_COLOR=1 dl $command" >out
    is "$(controls <out)" 0 "dl $(echo "$command" | cat -v): no control characters"
done

like "$(on_terminal "NO_COLOR=1 dl show $exp")" 'lv\\x1b\[2J\\x1b\]0;title\\x07' "a label: they are printed visibly"
like "$(on_terminal "NO_COLOR=1 dl show $exp")" 'rv\\x1b\[2J' "so is a reason"

# ---- commands for the user to copy quote the folder's name, which another user may have chosen
name="--force;touch ran;'\$(touch ran)'-0001"
mkdir copied
echo 'echo loss=1' >copied/train.sh
sed "s,sh $work/evil.sh,sh train.sh,; s/\"e\"/\"c\"/" e.conf >copied/c.conf
(cd copied && env -u DL_FREEZE timeout 300 dl run --local c.conf && mv c-0001 "./$name") >out 2>&1 || sed 's/^/# /' out
(cd copied && dl best -- "$name") >out 2>&1
note () { printf '%s\n' "$2" >>words; }
grep -o 'dl [a-z]* .*-0001.*' out | sed 's/^dl/note/' >commands
while read -r command; do eval "$command"; done <commands
is "$(sort -u words)" "./$name" "a command to copy has the folder's name as one word"
is "$(find . -name ran)" "" "and runs nothing else"
word=$(sed -n "s/.*dl reproduce \(.*\) [0-9]*$/\1/p" out | head -1)
rm -rf "./copied/$name/log/0"* "./copied/$name/trials"
said=$(cd copied && dl show -- "$name" 2>&1)
case ${word:+$said} in *"'dl rm $word' removes it"*) true ;; *) false ;; esac
ok $? "so has one in a message"

# ---- completion: bash expands the words that it is offered, and a terminal displays them
mkdir -p 'copied/x$(touch ran)-0001' 'copied/x`touch${IFS}ran`-0001' "copied/x$(printf '\033[2J\nx;touch ran')-0001"
for e in copied/x*; do touch "$e/experiment.conf"; done
mkdir copied/plain-0001 && touch copied/plain-0001/experiment.conf
cat >ask.bash <<'END'
. "$1"
COMP_WORDS=(dl show "")
COMP_CWORD=2
compopt () { :; }
_dl
printf '%s\n' "${COMPREPLY[@]}" | grep -v '^--'
END
is "$(cd copied && bash ../ask.bash "$srcdir/etc/completion/dl" 2>&1)" plain-0001 "completion offers no name that a shell expands"
is "$(cd copied && dl --complete-help show | grep -v '^--' | tr '\t' ' ')" "plain-0001 experiment" "nor do zsh and fish"
is "$(find . -name ran)" "" "and runs none of them"

# ---- spreadsheets

dl export $exp >plain.csv
dl export --safe-csv $exp >safe.csv
like "$(cat plain.csv)" '(^|,)"?=cmd' "CSV is raw by default"
is "$(python3 -c '
import csv, sys
rows = list(csv.reader(open("safe.csv")))
print([c for r in rows for c in r if c and c[0] in "=+@\t\r" or c[:1] == "-" and not c[1:2].isdigit()])' 2>&1)" "[]" "--safe-csv: no cell is a formula"
like "$(cat safe.csv)" "'=cmd" "formulas get a quote"
like "$(cat safe.csv)" "'\\+1\\+1" "of each kind"
like "$(cat safe.csv)" "'@SUM" "of each kind, @ included"
like "$(cat safe.csv)" ',-2\.[0-9]+(,|$)' "numbers get none"
dl export --safe-csv --format=json $exp >out 2>&1
is "$?$(grep -c -- '--safe-csv is for --format=csv' out)" 21 "--safe-csv needs CSV"
done_testing
