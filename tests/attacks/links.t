#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Links that another member of the group plants in an experiment: dl writes, reads and removes nothing behind them.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/groups.sh"

# make the victim's own files, which must not change
precious () {
    rm -rf "$victim_home/own"
    victim sh -c 'mkdir "$HOME/own" "$HOME/own/ckpt" "$HOME/own/a.1" && cd "$HOME/own" && echo precious >file &&
        for step in 1 2; do echo mine >"ckpt/0000000$step.h5"; done'
    before=$(listing)
}

listing () {
    (cd "$victim_home/own" && find . | sort && cat file ckpt/* 2>&1)
}

unharmed_own () { # unharmed_own NAME: check that those files have not changed
    is "$(listing)" "$before" "$1"
}

# The attacker plants a link from PATH to TARGET, and the victim runs dl COMMAND on the experiment:
# plant NAME PATH TARGET COMMAND...
plant () {
    name=$1
    path=$2
    target=$3
    shift 3
    case_of links
    precious
    attacker sh -c "umask 0; mkdir -p '$e/$(dirname "$path")'; rm -rf '$e/$path'; ln -s '$target' '$e/$path'"
    [ "$(readlink "$e/$path")" = "$target" ] || bail_out "$name: there is no link"
    victim timeout 100 dl "$@" "$e" >out 2>&1
    [ $? -ne 124 ]
    ok $? "$name: dl ends"
    unharmed_own "$name: nothing outside changes"
}

own=$victim_home/own
command="continue --trials=3 --local"
plant "hparams.json" trials/0003/a.1/hparams.json "$own/file" $command
plant "log" trials/0003/a.1/log "$own/file" $command
plant "an attempt" trials/0003/a.1 "$own" $command
plant "a trial" trials/0003 "$own" $command
plant "trials" trials "$own" $command
plant "workers" workers "$own" $command
plant "the log" log "$own" $command
plant "a block of the log" log/000000 "$own" $command
plant "the next entry" log/000000/00000010 "$own/file" $command
plant "results" results.h5 "$own/file" $command
plant "the reserve" reserve "$own/file" $command
for command in "export --format=csv" "export --format=h5" report; do
    plant "$command --output" x "$own/file" $command "--output=$group/links-0001/x"
done
for command in gc 'rm --force'; do
    plant "$command: ckpt" trials/0001/a.1/ckpt "$own/ckpt" $command
    plant "$command: a checkpoint" trials/0001/a.1/ckpt/00000001.h5 "$own/file" $command
    plant "$command: a hidden one" trials/0001/a.1/ckpt/.0123456789abcdef0123456789abcdef "$own/file" $command
    plant "$command: an attempt" trials/0001/a.1 "$own" $command
    plant "$command: trials" trials "$own" $command
done

# an attempt does not run in a folder that another user has made
case_of folder
attacker sh -c "umask 0; mkdir -p '$e/trials/0003/a.1'"
victim timeout 100 dl continue --trust --trials=3 --local "$e" >out 2>&1
holds "dl does not use an attempt's folder that another user created" [ ! -e "$e/trials/0003/a.1/log" ]
like "$(cat "$e"/workers/*.log)" "trials/0003/a.1: user $attacker_id created this folder" "and the worker says so"

# private data do not get into results.h5, which the group can read
case_of leak
cp -a "$e/trials/0001/a.1" "$victim_home/secret"
sed -i 's/loss/pass/' "$victim_home/secret/metrics.h5"
chown -R "$victim_id" "$victim_home/secret"
attacker sh -c "rm -r '$e/trials/0001/a.1'; ln -s '$victim_home/secret' '$e/trials/0001/a.1'"
runs 3 "dl does not print the target of a link" victim dl logs "$e" 1
like "$(cat out)" 'symbolic link' "but reports the link"
victim dl export "$e" --format=h5 --output="$victim_home/x.h5" >out 2>&1
victim dl show "$e" 1 >>out 2>&1
is "$(($(grep -ac loss "$victim_home/x.h5") > 0)) $(grep -c pass out)" "1 0" "dl show does not show it"
is "$(grep -ac pass "$victim_home/secret/metrics.h5") $(grep -ac pass "$victim_home/x.h5")" "1 0" "dl export does not export it"

# metrics.h5 files that take their names from another file, by features of HDF5, or overflow the reader's memory
victim sh -c 'mkdir "$HOME/here" && cd "$HOME/here" && for i in 1 2 3 4 5 6; do printf "%-64s" "password$i"; done >secret'
cp "$srcdir/tests/fuzz/corpus/metrics/mixed" "$victim_home/here/other.h5"
chmod 644 "$victim_home/here/other.h5"
for kind in external link attribute header; do
    case_of h5
    attacker sh -c "cat '$srcdir/tests/fuzz/corpus/metrics/$kind' >'$group/made' && mv -f '$group/made' '$e/trials/0001/a.1/metrics.h5'; rm -f '$e/results.h5'"
    (cd "$victim_home/here" && victim timeout 60 dl show "$e" 1 >"$work/out" 2>&1)
    is "$(($? < 11)) $(grep -c 'password[0-9]' out)" "1 0" "metrics.h5: $kind: dl show"
    like "$(cat out)" "^dl: .*metrics.h5: refusing to read it: .*belongs to user $attacker_id" "metrics.h5: $kind: libhdf5 does not open it"
    (cd "$victim_home/here" && victim timeout 60 dl export --format=h5 --output="$work/group/x.h5" "$e" >/dev/null 2>&1)
    is "$(($? < 11)) $(grep -c 'password[0-9]' "$work/group/x.h5")" "1 0" "metrics.h5: $kind: dl export"
    rm -f "$work/group/x.h5"
done

# the last lines of a linked log do not get into the decision log as the reason of a failure
cat >why.conf <<END
name = "why"; entrypoint = "touch '$group/at'; while [ ! -e '$group/go' ]; do sleep 0.05; done; exit 3";
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; }; max_restarts = 0;
END
chmod 644 why.conf
victim mkdir "$victim_home/private"
victim sh -c "echo password >'$victim_home/private/log'"
victim sh -c "umask 002; exec timeout 100 dl run --local --dir '$group' why.conf" >out 2>&1 &
wait_for 60 test -e "$group/at"
attacker sh -c "cd '$group/why-0001/trials/0001' && mv a.1 b && ln -s '$victim_home/private' a.1"
ok $? "an attempt's folder is replaced while it runs"
attacker touch "$group/go"
wait
like "$(cat "$group"/why-0001/log/*/*)" '"op": ?"fail"' "the attempt fails"
is "$(cat "$group"/why-0001/log/*/* | grep -c password)" 0 "the log contains nothing of a link's target"

# the watcher of --dl-debug does not write through links
victim sh -c "umask 002; mkdir '$group/debug'; echo precious >'$victim_home/file'"
victim env SLURM_JOB_ID=1 SLURM_STEP_ID=0 sh -c "echo \$\$ >'$group/debug/pid'; while [ ! -e '$group/debug/planted' ]; do sleep 0.05; done
    exec dl watch-ranks '$group/debug' 1000 0" &
wait_for 60 test -s "$group/debug/pid"
number=$(cat "$group/debug/pid")
attacker sh -c "ln -s '$victim_home/file' '$group/debug/watch-0.$number~'; touch '$group/debug/planted'"
wait_for 60 test -e "$group/debug/watch-0"
is "$? $(cat "$victim_home/file")" "0 precious" "a watcher of ranks does not write through links"
kill -9 "$number"
wait

# the user may give the experiment's path as a link of the user's own
ln -s "$group/s-0001" "$victim_home/mine"
like "$(victim dl show "$victim_home/mine" 2>&1)" "^$group/s-0001: completed" "the path of an experiment may be a link"

# but another user's link next to the experiments is ignored: it would redirect a request to another experiment
victim mkdir -p "$victim_home/own/z-0001"
victim cp -r "$group/s-0001" "$victim_home/own/z-0001/x-0001"
attacker ln -s "$victim_home/own/z-0001/x-0001" "$group/x-0001"
is "$(victim dl ls --dir="$group" 2>&1 | grep -c x-0001)" 0 "dl ls skips another user's link"
before=$(cat "$victim_home"/own/z-0001/x-0001/log/*/* | sha256sum)
like "$(victim dl label --dir="$group" x-0001 secret 2>&1)" "^dl: .*x-0001: another user created this link: name the folder itself" "naming it is an error"
like "$(victim dl label --dir="$group" x secret 2>&1)" "^dl: no experiment 'x' in" "its short name is not found"
like "$(victim dl show --dir="$group" 2>&1)" "^$group/" "it does not count as the newest"
is "$(cat "$victim_home"/own/z-0001/x-0001/log/*/* | sha256sum)" "$before" "it received no request"
attacker rm "$group/x-0001"

# dl does not wait for files of workers and claims that are dangling links to hidden files
case_of slow
attacker perl -e 'for (1 .. 200) { my $n = sprintf ("%032x", $_); symlink (".$n", "$ARGV[0]/workers/$n"); symlink (".$n", "$ARGV[0]/trials/0001/claim.$_") }' "$e"
victim timeout 60 dl show "$e" >out 2>&1
is "$?" 0 "200 dangling links in workers/: dl show ends"
victim timeout 60 dl report --output="$victim_home/report.html" "$e" >out 2>&1
is "$?" 0 "and so does dl report"
attacker rm "$e/provenance.json"
like "$(victim timeout 30 dl show --provenance "$e" 2>&1; echo "=$?")" "provenance.json: cannot read: No such file" "dl does not wait for a record that a member removed"

# ---- dl ckpt extract, which names a file after the tensor
precious
/usr/bin/python3 -c 'import struct
h = b"""{"w": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]}}"""
open("w.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"evil\n")'
dl ckpt import w.safetensors w.h5 >out 2>&1 && chmod 644 w.h5
attacker ln -s "$own/file" "$group/w.raw"
is "$(cd "$group" && victim dl ckpt extract --format=raw "$work/w.h5" w 2>&1; test -L w.raw || cat w.raw)" "w.raw
evil" "dl ckpt extract: replaces another user's link"
unharmed_own "which is not followed"
victim rm "$group/w.raw"
victim ln -s "$own/raw" "$group/w.raw"
is "$(cd "$group" && victim dl ckpt extract --format=raw "$work/w.h5" w 2>&1; cat "$own/raw")" "w.raw
evil" "it follows the user's own link"

# ---- a folder in which others may replace an experiment
mkdir -p free sticky
chown "$victim_id:$shared_group" free sticky
chmod 2775 free
chmod 3775 sticky
tiny="run --local --no-workers $work/s.conf"
like "$(victim dl $tiny --dir=free 2>&1; echo "=$?")" "^dl: free: its group can replace your folder.*chmod \+t" "a group's folder: prints one line"
is "$(victim dl $tiny --dir=sticky 2>&1)" "$work/sticky/s-0001" "prints none if the sticky bit is set"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    new=$(realpath free)/s-0002
    victim mkdir -m 700 "$victim_home/closed"
    attacker timeout 100 sh -c "while ! mv '$new' '$new.away' 2>/dev/null; do :; done; ln -s '$victim_home/closed' '$new'" &
    victim timeout 100 strace -o "$victim_home/calls" -e trace=mkdir -e inject=mkdir:delay_exit=500000 -P "$new" dl $tiny --dir=free >out 2>&1
    wait $!
    like "$(cat "$victim_home/calls")" "^mkdir\(\"$new\".* = 0 \(DELAYED\)" "a folder that is replaced right after its creation"
    is "$(stat -c %a:%g "$victim_home/closed")" "700:$victim_id" "the group gets access to no other folder"
    rm -rf "$new"*
else
    skip "a folder that is replaced right after its creation" "no strace"
fi
chmod 777 free
is "$(victim dl $tiny --dir=free 2>&1; echo "=$?")" "dl: free: everybody can replace your folder, and so decide what you run: chmod +t
=2" "a world-writable folder is refused"
sed 's,^entrypoint.*,entrypoint = "echo $DL_EXPERIMENT_DIR; dl log loss=1";,' s.conf >where.conf
chmod 644 where.conf
like "$(victim env TMPDIR="$work/free" timeout 100 dl try where.conf 2>&1)" "^/tmp/dl-try" "a world-writable TMPDIR is not used"

# ---- the folder of --dl-debug is replaced while its watcher runs
d=$group/dl-debug-7.0
victim sh -c 'mkdir "$1" "$HOME/kept"; echo precious >"$HOME/kept/pipe_0"' sh "$d"
victim env SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_NODEID=0 sh -c '(sleep 1000 >/dev/null 2>&1 & echo $! >"$HOME/task")
    exec timeout 300 dl watch-ranks "$1" 100 "$(cat "$HOME/task")"' sh "$d" >out 2>&1 &
watcher=$!
wait_for 100 test -e "$d/watch-0"
attacker sh -c "mv '$d' '$d.away' && ln -s '$victim_home/kept' '$d'"
kill "$(cat "$victim_home/task")"
wait $watcher
is "$? $(cd "$victim_home/kept" && ls) $(cat "$victim_home/kept/pipe_0")" "0 pipe_0 precious" "dl watch-ranks: removes nothing behind a link"
is "$(ls "$d.away")" "" "but removes what it created"
done_testing
