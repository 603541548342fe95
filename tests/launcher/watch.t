#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl watch in tmux windows and in a pipe; dl top.
. "$srcdir/tests/lib.sh"
command -v tmux >/dev/null || skip_all "no tmux"
unset COLUMNS LINES TMUX NO_COLOR DL_DIR DL_MONITOR_DIR
export LC_ALL=C.UTF-8 TERM=xterm-256color
make=$builddir/tests/launcher/makesweep
socket=$work/tmux
windows=0
trap 'tmux -S "$socket" kill-server 2>/dev/null; clean_up' EXIT

conf () { # conf NAME SEARCHER
    cat >"$1.conf" <<EOF2
name = "$1"; entrypoint = "true"; max_restarts = 0;
searcher = { metric = "loss"; $2 };
resources = { workers = 8; slots_per_trial = 1; };
reproducibility = { experiment_seed = 5; };
hyperparameters = { lr = { type = "log"; minval = -5; maxval = -1; }; width = { type = "int"; minval = 1; maxval = 8; };
    opt = { type = "categorical"; vals = ("adam", "sgd", "lion"); }; };
EOF2
}
conf rungs 'name = "asha"; max_trials = 150; max_length = 27; divisor = 3;'
conf many 'name = "random"; max_trials = 10000; max_length = 1;'
conf one 'name = "random"; max_trials = 3;'
conf none 'name = "random"; max_trials = 3;'
conf hostile 'name = "random"; max_trials = 40; max_length = 3;'
sed -i 's/slots_per_trial = 1;//' none.conf
sed -i 's/"lion"/"\\x1b[2J\\x1b]0;title\\x07", "\xc2\x9b31m", "ü☃漢字"/' hostile.conf
STOP_AFTER=103 "$make" . rungs.conf 20 >out 2>&1
ok $? "a running sweep"
STOP_AFTER=9900 "$make" . many.conf >out 2>&1
ok $? "one of 10,000 trials"
"$make" . one.conf 2 >out 2>&1
STOP_AFTER=30 "$make" . hostile.conf 2 >out 2>&1
ok $? "one with odd names"
dl run --local --no-workers none.conf >out 2>&1

# ---- windows

window () { # window COLUMNS LINES COMMAND: run it in a shell that records its exit status
    printf 'trap : INT\n%s\necho status $? >>%s/status\nsleep 1000\n' "$3" "$work" >command.sh
    : >status
    windows=$((windows + 1)) # a new server, because the last one may still be shutting down
    socket=$work/tmux$windows
    tmux -S "$socket" -f /dev/null new-session -d -x "$1" -y "$2" "printf 'what was there before\n'; sh command.sh"
}
screen () { tmux -S "$socket" capture-pane -p "$@"; }
keys () { tmux -S "$socket" send-keys "$@"; }
close_window () { tmux -S "$socket" kill-server; }
shows () { screen | grep -q -e "$1"; }
has_ended () { [ -s status ]; }
widest () { screen | wc -L; }

for size in '100 40' '80 24' '40 12' '300 60' '20 5'; do
    window "${size% *}" "${size#* }" "dl watch rungs"
    holds "$size: a picture" wait_for 100 shows '%'
    screen >picture
    [ "$(widest)" -le "${size% *}" ] && [ "$(wc -l <picture)" -le "${size#* }" ]
    ok $? "$size: it fits"
    like "$(head -n 1 picture)" '^rungs-0001 ' "$size: the first line is there"
    keys q
    wait_for 100 has_ended
    is "$(cat status)" "status 4" "$size: q ends it"
    like "$(screen)" '^what was there' "$size: and the terminal is as it was"
    close_window
done

window 100 44 "dl watch rungs"
wait_for 100 shows '^best  '
# mask what changes with time
screen | sed -E 's/[0-9.]+(ms|s)\b|[0-9]+m[0-9]+s|[0-9]+h[0-9]+m/T/g; s/ +/ /g; s/ $//' >picture
like "$(cat picture)" '^rungs-0001 · running · asha · 0 workers T$' "state, searcher, workers, time"
like "$(cat picture)" '^█+.?·+ [0-9]+ %, time left not known$' "progress; no worker runs"
like "$(cat picture)" '^[0-9]+ running · [0-9]+ paused · [0-9]+ completed' "how many are in which state"
like "$(cat picture)" '^GPU time spent: T, about T left$' "hours"
like "$(cat picture)" '^[0-9]+ GPUs? █*.?·* [0-9]+ % busy, memory 25 % full$' "GPUs"
like "$(cat picture)" '^best loss 0\.[0-9]+: trial [0-9]+ at length 27 lr=.* opt=.* width=' "the best trial"
like "$(cat picture)" '^no worker is left: the last one ended T ago$' "no worker runs"
is "$(grep -c '│' picture)" 6 "a chart"
is "$(sed -nE 's/^(length)? ?([0-9]+) [^ ]*· ?[0-9]+ best .*|^(length)? ?([0-9]+) █+ [0-9]+ best .*/\2\4/p' picture | xargs)" "1 3 9 27" "rungs"
like "$(cat picture)" '^ [0-9]+ [0-9]+/[0-9]+ █+ [0-9.]+ T - lr=' "a running trial with its newest value"
like "$(cat picture)" '^failed$' "failures"
like "$(cat picture)" 'out of memory: tried to allocate 2.5 GiB </script><b>x$' "and their reasons, one line each"
best=$(dl show --json rungs | json 'd["best_trial"]')
like "$(cat picture)" "^ $best\\* [0-9]+/27 " "the best one is marked"

# resizing, ^C, and the terminal's settings
tmux -S "$socket" resize-window -x 60 -y 20
narrow () { [ "$(widest)" -eq 60 ] && shows '^rungs-0001'; }
holds "another size of the window" wait_for 100 narrow
holds "fits, too" [ "$(widest)" -le 60 ]
keys C-c
wait_for 100 has_ended
is "$(cat status)" "status 4" "^C ends it"
is "$(tmux -S "$socket" display-message -p '#{cursor_flag} #{alternate_on}')" "1 0" "the cursor is back, and the first screen"
close_window
window 80 24 "stty -a >before; dl watch rungs; r=\$?; stty -a >after; (exit \$r)"
wait_for 100 shows '%'
keys C-c
wait_for 100 has_ended
is "$(cat after)" "$(cat before)" "the settings of the terminal are as before"
close_window

# ---- no colour, no UTF-8, a dumb terminal, many trials, hostile names
window 90 30 "dl watch rungs"
wait_for 100 shows '^best  '
like "$(screen -e)" "$(printf '\033\\[3[0-9]m')" "colours"
close_window
window 90 30 "NO_COLOR=1 dl watch rungs"
wait_for 100 shows '^best  '
is "$(screen -e | grep -c "$(printf '\033\\[')")" 0 "NO_COLOR"
close_window
window 90 30 "LC_ALL=C dl watch rungs"
wait_for 100 shows '^best  '
is "$(screen | LC_ALL=C grep -c '[^ -~]')" 0 "no UTF-8"
like "$(screen)" '^#+-+ +[0-9]+ %' "a bar of ASCII"
close_window
window 90 30 "dl watch many"
holds "10,000 trials" wait_for 100 shows '^best  '
is "$(screen | wc -l)" 30 "in the same window"
like "$(screen)" 'completed' "are counted"
close_window
window 120 40 "dl watch hostile"
wait_for 100 shows '^best  '
like "$(screen)" 'opt=\\x1b\[2J\\x1b\]0;title\\x07|opt=\\xc2\\x9b31m' "control characters are visible"
is "$(tmux -S "$socket" display-message -p '#{pane_title}' | grep -c '^title$')" 0 "and have no effect"
close_window
window 90 30 "TERM=dumb dl watch rungs"
holds "a terminal that cannot be redrawn gets lines" wait_for 100 shows '^/.*rungs-0001: running, [0-9]* % done, [0-9]* trials'
keys C-c
close_window
window 90 12 "dl watch none"
holds "no trial at all" wait_for 100 shows '^no result yet'

# ---- until the experiment ends
window2=$(screen | head -n 1)
like "$window2" '^none-0001 · running · random' "a running experiment"
dl stop none >out 2>&1
wait_for 100 has_ended
is "$(cat status)" "status 4" "it ends with the experiment, with its status"
like "$(screen)" 'none-0001: stopped, 0 trials' "and a last line"
close_window
dl watch one >out 2>&1
is "$?" 0 "of one that is completed: 0"
like "$(cat out)" '^/.*/one-0001: completed, 3 trials$' "and only the last line"
dl watch missing >out 2>&1
is "$? $(grep -c "no experiment 'missing'" out)" "3 1" "no such experiment"
like "$(dl watch onee 2>&1)" "no experiment 'onee' in .* \(did you mean 'one'\?\)$" "the nearest name is suggested"
like "$(dl watch hos 2>&1)" "no experiment 'hos' in .* \(did you mean 'hostile'\?\)$" "or one with that beginning"

# ---- a pipe
sed 's/"one"/"live"/; s/max_trials = 3/max_trials = 4/; s/slots_per_trial = 1;//; s/workers = 8/workers = 1/' one.conf |
    sed 's/entrypoint = "true"/entrypoint = "while ! test -e $DL_EXPERIMENT_DIR\/go; do sleep 0.1; done; dl log loss={lr}"/' >live.conf
dl run --local live.conf >run.out 2>&1 &
run=$!
begun () { dl show live 2>/dev/null | grep -q 'open'; }
wait_for 100 begun
dl watch --seconds=0.2 live >lines 2>err &
pid=$!
wait_for 100 grep -q 'live-0001: running' lines
touch live-0001/go
wait $pid
is $? 0 "a pipe: it ends with the experiment"
wait $run
is "$(grep -cE '^ +[0-9.]+s  trial [1-4] +length 1 +loss ' lines)" 4 "a line for each result"
like "$(cat lines)" 'live-0001: completed, 4 trials' "and the last word"
is "$(LC_ALL=C grep -c "$(printf '\033')" lines)$(cat err)" 0 "no control characters"

# ---- dl run shows the same picture
sed 's/"live"/"shown"/' live.conf >shown.conf
window 100 30 "dl run --local shown.conf"
holds "dl run shows the same picture" wait_for 100 shows '^shown-0001 · running · random · 1 worker'
keys q
touch shown-0001/go
wait_for 200 has_ended
is "$(cat status)" "status 0" "q does not end it"
like "$(screen)" 'shown-0001: completed|shown: completed after' "and its last line is kept"
close_window

# ---- dl top
dl top >top.out 2>&1
is $? 0 "dl top"
like "$(cat top.out)" '^[0-9]+ GPUs?, busy [0-9]+ %' "a sum"
like "$(cat top.out)" '^[0-9]+\.0 +rungs-0001 [0-9]+ +n1 +0 .* [0-9]+ % +18.6 of 75 GiB' "step, trial, node, GPU, busy, memory"
dl top --json | python3 -c 'import json, sys; d = json.load(sys.stdin); assert d and d[0]["memory_size"] == 8e10 and d[0]["node"] == "n1", d'
ok $? "--json"
mkdir empty
dl top empty >out 2>&1
is "$? $(cat out)" "3 dl: none of your running jobs has monitored GPUs: use srun --dl-monitor" "nothing there"
dl top --watch >out 2>&1
is "$? $(cat out)" "2 dl: top: --watch needs a terminal" "--watch in a pipe"
window 100 20 "dl top --watch"
holds "--watch" wait_for 100 shows 'GiB'
keys q
wait_for 100 has_ended
is "$(cat status)" "status 0" "until q"
done_testing
