#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unmodified scripts: their own files survive a pause, options without a value are left out, typos are reported.
. "$srcdir/tests/lib.sh"

# A script that knows nothing of dl: it saves to --out, continues from --resume, and dies of SIGTERM.
cat >train.sh <<'END'
out= epochs= resume= momentum=none
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$2 ;;
    --epochs) epochs=$2 ;;
    --resume) resume=$2 ;;
    --momentum) momentum=$2; [ -n "$2" ] || { echo "argument --momentum: invalid float value: ''" >&2; exit 2; } ;;
    *) echo "unrecognized argument: $1" >&2; exit 2 ;;
    esac
    shift 2
done
epoch=0
[ -z "$resume" ] || epoch=$(cat "$resume") || exit 3
echo "from $epoch, momentum $momentum"
while [ "$epoch" -lt "$epochs" ]; do
    epoch=$((epoch + 1))
    [ ! -f "$PACE" ] || sleep 0.2
    echo "$epoch" >"$out/last.tmp"
    mv "$out/last.tmp" "$out/last.pt"
    echo "epoch $epoch: loss = 0.$epoch"
done
END
conf () { # conf NAME ENTRYPOINT
    cat >"$1.conf" <<END
name = "$1";
entrypoint = $2;
metrics = { pattern = "epoch {step}: loss = {loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 1; max_length = 500; };
resources = { workers = 1; };
worker = { heartbeat = 1; lease = 60; grace = 10; };
environment = { PACE = "$work/pace"; };
hyperparameters = {
    opt = { type = "categorical"; vals = ["sgd", "adam"]; };
    momentum = { type = "float"; minval = 0.5; maxval = 0.9; when = { opt = "sgd"; }; };
};
END
}

# ---- a pause in the middle of the only segment
touch pace
conf pause '"sh train.sh --out {attempt_dir} --epochs {length} [--resume {resume_dir}/last.pt] [--momentum {momentum}]"'
timeout 500 dl run --local pause.conf >out 2>&1 &
holds "a trial is in the middle of its segment" wait_for 300 sh -c '[ "$(cat pause-0001/trials/0001/a.1/last.pt)" -ge 3 ]'
dl pause pause >out2
wait $!
is $? 4 "paused"
first=$(cat pause-0001/trials/0001/a.1/last.pt)
[ "$first" -ge 3 ] && [ "$first" -lt 500 ]
ok $? "before its end (at $first)"
is "$(count pause-0001 result) $(count pause-0001 park) $(count pause-0001 fail)" "0 1 0" "without a result"
rm pace
timeout 500 dl resume --local pause >out 2>&1
is $? 0 "resumed: completed"
like "$(dl logs pause 1)" "^from $first, momentum" "the script continued where it was"
is "$(grep -c '^epoch' pause-0001/trials/0001/a.2/log)" "$((500 - first))" "and trained only the rest"
is "$(grep -c '^from 0, momentum' pause-0001/trials/0001/a.1/log)" 1 "the first attempt had no option --resume"

# ---- a script that catches SIGTERM, saves and exits with 0 was stopped and has no result; max_length is unset, because only
# the script knows how many epochs it trains
cat >catch.sh <<'END'
trap stop=1 TERM
epoch=0
[ -z "$2" ] || epoch=$(cat "$2") || exit 3
while [ "$epoch" -lt 40 ] && [ -z "$stop" ]; do
    epoch=$((epoch + 1))
    [ ! -f "$PACE" ] || sleep 0.2
    echo "$epoch" >"$1/last.pt"
    echo "epoch $epoch: loss = 0.$epoch"
done
exit 0
END
conf catch '"exec sh catch.sh {attempt_dir} [{resume_dir}/last.pt]"'
sed -i 's/ max_length = 500;//' catch.conf
touch pace
timeout 500 dl run --local catch.conf >out 2>&1 &
wait_for 300 grep -q 'epoch 3' catch-0001/trials/0001/a.1/log
dl pause catch >out2
wait $!
is "$? $(count catch-0001 result) $(count catch-0001 park) $(count catch-0001 fail)" "4 0 1 0" "a script that ends with status 0 after a stop request has no result"
rm pace
timeout 500 dl resume --local catch >out 2>&1
is $? 0 "and continues"
like "$(dl show catch-0001)" '^ *1 completed .* 0\.4 ' "to its own end"
is "$(count catch-0001 park) $(grep -c ^epoch catch-0001/trials/0001/a.2/log)" "1 $((40 - $(grep -c ^epoch catch-0001/trials/0001/a.1/log)))" "from where it was"

# ---- a crash that a pipe hides
cat >crash.sh <<'END'
for epoch in 1 2 3; do echo "epoch $epoch: loss = 0.$epoch"; done
exit 1
END
conf pipe '"sh crash.sh 2>&1 | tee {attempt_dir}/out"'
sed -i 's/500/12/' pipe.conf
timeout 500 dl run --local pipe.conf >out 2>&1
like "$(cat out)" "^dl: pipe.conf:2: 'entrypoint' ends in a pipe, which exits with the status of its last command, 'tee': a crash" "a pipe at the end of the entrypoint gives a warning"
like "$(cat out)" 'trial 1 .* ended at 3 of 12$' "a trial that ended before its length is reported at once"
like "$(dl show pipe-0001)" '^trial 1 ended at 3 of 12 with status 0: if that was a crash' "and stays marked"
for command in 'sh crash.sh || true' 'a | b; sh crash.sh' 'set -o pipefail; a | b' "echo 'a|b'" 'a | b && sh crash.sh'; do
    conf pipe "\"$command\""
    holds "no pipe at the end: $command" [ -z "$(dl run --dry-run pipe.conf 2>&1 | grep 'ends in a pipe')" ]
done
hides () { # hides PATTERN COMMAND: expect this warning about COMMAND's exit status
    conf pipe "\"$2\""
    like "$(dl run --dry-run pipe.conf 2>&1)" "^dl: pipe.conf:2: $1" "a status that hides a crash: $2"
}
hides "'entrypoint' ends in '[|][|] true', so a crash counts as a result: remove that$" 'sh crash.sh || true'
hides "'entrypoint' exits with the status of its last command, 'echo': a crash before it would count as a result; start with 'set -e'$" 'sh crash.sh; echo done'
hides "'entrypoint' exits with the status of its last command, 'cp'" 'cd . && sh crash.sh; cp crash.sh {attempt_dir}; # the end'
hides "'entrypoint' exits with the status of its last command, 'wait'" 'sh crash.sh & wait'
hides "'entrypoint' ends in a pipe" 'sh crash.sh | tee x # | y; z'
for command in 'sh crash.sh && echo done' 'set -e; sh crash.sh; echo done' 'sh crash.sh & wait $!' 'cd .; sh crash.sh' 'sh crash.sh # | tee x' 'sh crash.sh $(echo 1 | cat)' 'sh crash.sh; exit $?' "sh crash.sh 'a; echo b'" 'mkdir -p x; echo 1' 'sh crash.sh ||\n exit 3' 'sh crash.sh 2>&1'; do
    conf pipe "\"$command\""
    is "$(dl run --dry-run pipe.conf 2>&1 | grep -c 'counts as')" 0 "no status hides it: $command"
done

# ---- a program that gets a file to resume from, but starts over
cat >anew.sh <<'END'
# anew.sh HOW EPOCHS OUT [LAST]
done=0
[ -z "${4:-}" ] || done=$(cat "$4")
[ "$1" != tests ] || echo "epoch 0: loss = 9"
[ "$1" = goes ] || [ "$1" = tests ] || { n=$(($2 - done)); done=0; [ "$1" = counts ] || n=$2; set -- "$1" "$n" "$3"; }
while [ "$done" -lt "$2" ]; do
    done=$((done + 1))
    echo "epoch $done: loss = 0.$done"
done
echo "$DL_LENGTH" >"$3/last"
END
for how in goes tests counts anew; do
    conf $how "\"sh anew.sh $how {length} {attempt_dir} [{resume_dir}/last]\""
    sed -i 's/name = "random".*/name = "asha"; divisor = 2; metric = "loss"; max_trials = 4; max_length = 4; };/' $how.conf
    timeout 300 dl run --local $how.conf >out 2>&1
    case $how in
    goes | tests) is "$? $(dl show $how-0001 | grep -c 'was given last')" "0 0" "a program that continues ($how)" ;;
    *) like "$(cat out)" '^trial [0-9]: attempt 2 was given last of attempt 1, but logged the same first steps: its program did not continue from it, or counts its steps' "one that starts over ($how)" ;;
    esac
done

# ---- a program that logs a value before it loads the file: dl must not pass on a broken file again and again
cat >tests.sh <<'END'
# tests.sh EPOCHS OUT [LAST]
echo "epoch 0: loss = 9"
done=0
[ -z "${3:-}" ] || done=$(cat "$3")
[ "$done" -ge 0 ] || exit 1
echo "from $done"
while [ "$done" -lt "$1" ]; do
    done=$((done + 1))
    echo "epoch $done: loss = 0.$done"
done
[ "$DL_ATTEMPT" = 1 ] && echo cut >"$2/last" || echo "$done" >"$2/last"
END
for how in tests plain; do
    [ $how = tests ] || sed -i '/^echo .epoch 0/d' tests.sh
    conf broken$how '"sh tests.sh {length} {attempt_dir} [{resume_dir}/last]"'
    sed -i 's/name = "random".*/name = "asha"; divisor = 2; metric = "loss"; max_trials = 2; max_length = 2; };/' broken$how.conf
    timeout 300 dl run --local broken$how.conf >out 2>&1
    is "$? $(grep -h '^from' broken$how-0001/trials/*/a.3/log)" "0 from 0" "a file of an accepted attempt that breaks the next ($how)"
done

# ---- a segment continues the last one, from the newest attempt that has the file
conf rungs '[ "sh", "train.sh", "--out", "{attempt_dir}", "--epochs", "{length}", "[--resume {resume_dir}/last.pt]", "[--momentum {momentum}]" ]'
sed -i 's/name = "random".*/name = "asha"; divisor = 2; metric = "loss"; max_trials = 8; max_length = 8; };/' rungs.conf
runs 0 "promotions, with a list of arguments" dl run --local rungs.conf
is "$(count rungs-0001 fail)" 0 "nothing failed, with momentum and without"
long=$(grep -l '^epoch 8' rungs-0001/trials/*/a.*/log | head -1)
like "$(cat "$long")" '^from 4, momentum' "a promoted trial continues"
is "$(cat rungs-0001/trials/*/a.1/log | sed -n 's/^from 0, momentum \(none\|0\.[0-9]*\)$/\1/p' | sed 's/0.*/number/' | sort -u | tr '\n' ' ')" "none number " \
    "inactive parameters leave their option out"

# ---- a fork from a trial with an inactive parameter
adam=$(grep -l '"opt": "adam"' rungs-0001/trials/*/a.1/hparams.json | head -1 | sed 's|.*trials/0*\([0-9]*\)/.*|\1|')
runs 0 "a fork of it" dl fork --local rungs-0001 "$adam"
like "$(cat rungs-fork-0001/trials/0001/a.1/log)" '^from [0-9]*, momentum none' "which is trained without the parameter"
runs 0 "one that trains further" dl fork --local --set searcher.max_length=12 rungs-0001 "$(echo "$long" | sed 's|.*trials/0*\([0-9]*\)/.*|\1|')"
like "$(cat rungs-fork-0002/trials/0001/a.1/log)" '^from 8, momentum' "continues from the last file of the trial"

# ---- {trial_dir}, DL_TRIAL_DIR and DL_RESUME_DIR
cat >own.sh <<'END'
[ "$1" = "$DL_TRIAL_DIR" ] && [ -d "$1" ] || exit 9
echo "$DL_ATTEMPT" >>"$1/attempts"
echo "resume [$DL_RESUME_DIR]"
[ "$DL_ATTEMPT" -gt 1 ] || echo 1 >"$DL_ATTEMPT_DIR/some"
[ "$DL_ATTEMPT" -ne 2 ] || touch "$DL_ATTEMPT_DIR/empty"
[ "$DL_ATTEMPT" -gt 2 ] || exit 75
echo "epoch 500: loss = 1"
END
conf own '"sh own.sh {trial_dir}"'
runs 0 "a folder of the trial" dl run --local own.conf
is "$(tr '\n' ' ' <own-0001/trials/0001/attempts)" "1 2 3 " "outlives its attempts"
is "$(cat own-0001/trials/0001/a.1/log)" "resume []" "DL_RESUME_DIR: none at first"
like "$(cat own-0001/trials/0001/a.3/log)" '^resume \[/.*/own-0001/trials/0001/a.1\]$' "then the newest attempt with files; an empty one does not count"

# ---- a file in {trial_dir}: its group is left out until it exists, and {resume_dir} finds it, too
sed 's/\[ ! -f "$PACE" \] || sleep 0.2/[ "$epoch" -lt 3 ] || [ -n "$resume" ] || exit 75/' train.sh >stop.sh
for group in '--resume {trial_dir}/last.pt' '--resume {resume_dir}/last.pt'; do
    conf folder "\"sh stop.sh --out {trial_dir} --epochs {length} [$group]\""
    runs 0 "$group: completed" dl run --local folder.conf
done
for i in 1 2; do
    is "$(grep -h ^from folder-000$i/trials/0001/a.*/log | cut -d, -f1 | tr '\n' ' ')" "from 0 from 2 " "and the second attempt continued"
done

# ---- dl falls back from a broken file to older ones
cat >save.sh <<'END'
[ -z "$1" ] || { grep . "$1/last.pt" && ! grep broken "$1/last.pt"; } || exit 3
[ ! -f "$DL_EXPERIMENT_DIR/../never" ] || [ "$DL_ATTEMPT" -le 3 ] || exit 3
echo "attempt $DL_ATTEMPT" >"$DL_ATTEMPT_DIR/last.pt"
[ "$DL_ATTEMPT" -ne 3 ] || echo broken >"$DL_ATTEMPT_DIR/last.pt"
[ "$DL_ATTEMPT" -ne 4 ] || { echo garbage >"$DL_ATTEMPT_DIR/last.pt"; exit 3; }
echo "epoch $DL_ATTEMPT: loss = 0.5"
[ "$DL_ATTEMPT" -gt 3 ] || exit 75
END
conf works '"sh save.sh [{resume_dir}]"'
runs 0 "an attempt whose file is broken" dl run --local works.conf
like "$(cat works-0001/trials/0001/a.5/log)" '^attempt 2$' "after an attempt that failed before its first metric the files of the attempt before are taken"
like "$(cat works-0001/trials/0001/a.5/log)" '^dl: this attempt continues from attempt 2, and not from attempt 3: an attempt failed before its first metric$' "a line says so"
touch never
timeout 300 dl run --local --set max_restarts=7 works.conf >out 2>&1
is "$(sed -n 's/^attempt //p' works-0002/trials/0001/a.[2-9]/log | tr '\n' ' ')" "1 2 2 1 2 " "older and older files, then none, then all again: if nothing works it was not the file"
rm never

# ---- dl does not blame a file because the attempt that got it was killed
cat >killed.sh <<'END'
echo "resume [$1]"
[ "$DL_ATTEMPT" -ne 2 ] || kill -9 $$
echo "attempt $DL_ATTEMPT" >"$DL_ATTEMPT_DIR/last.pt"
echo "epoch $DL_ATTEMPT: loss = 0.5"
[ "$DL_ATTEMPT" -gt 1 ] || exit 75
END
conf killed '"sh killed.sh [{resume_dir}/last.pt]"'
runs 0 "an attempt that is killed before its first metric" dl run --local killed.conf
like "$(cat killed-0001/trials/0001/a.3/log)" '^resume \[/.*/a.1/last.pt\]$' "the next one gets the same file"

# ---- mistakes are found before anything starts
misspelt () { # misspelt SED PATTERN NAME
    sed "$1" pause.conf >bad.conf
    refused 2 "$2" "$3" dl run --local bad.conf
    refused 2 "$2" "$3: dry run" dl run --local --dry-run bad.conf
}
misspelt 's/\[--momentum {momentum}\]/--momentum {momentum}/' \
    "^bad.conf:2: 'entrypoint': \{momentum\} has no value if its 'when' is false; write it as a group, which is then omitted: \[--momentum \{momentum\}\]$" \
    "a conditional parameter outside a group"
misspelt 's/\[--momentum {momentum}\]/--momentum={momentum}/' ': \[--momentum=\{momentum\}\]$' "in one word"
misspelt 's/\[--resume {resume_dir}.last.pt\]/--resume {resume_dir}\/last.pt/' \
    '^bad.conf:2: .*\{resume_dir\} has no value before.*: \[--resume \{resume_dir\}/last.pt\]$' "a file in {resume_dir}"
misspelt 's/^entrypoint.*/entrypoint = [ "sh", "train.sh", "--momentum", "{momentum}" ];/' ': "\[--momentum \{momentum\}\]"$' "in a list"
misspelt 's/train.sh/trian.sh/' "^bad.conf:2: 'entrypoint': there is no file 'trian.sh' in $work, where the trials run; did you mean 'train.sh'\?$" "a misspelt script"
misspelt 's/"sh train.sh/"nosuchprogram train.sh/' "there is no program 'nosuchprogram' in PATH" "a misspelt program"
like "$(dl run --dry-run bad.conf 2>&1)" "^dl: bad.conf:[0-9]+: 'entrypoint': there is no program 'nosuchprogram' in PATH on this host" "with Slurm one line: its nodes may have it"
misspelt 's/"sh train.sh/".\/train.sh/' "'./train.sh' cannot be run: chmod \+x $work/./train.sh" "a script that is no program"
is "$(ls -d pause-0002 2>/dev/null)" "" "no experiment was made"
for command in 'cd /; sh nosuch.sh' '$HOME/nosuch' 'sh -c nosuch.sh' 'python3 -m nosuch' 'A=1 nosuch' 'module load x; nosuch'; do
    sed "s|^entrypoint.*|entrypoint = \"$command\";|" pause.conf >good.conf
    runs 0 "only the shell can tell: $command" dl run --dry-run good.conf
done

done_testing
