#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl flow --local: order, fan-out and fan-in, conditions, the cache, failures, kills, bad input
. "$srcdir/tests/lib.sh"
unset DL_DIR DL_FREEZE
mkdir "$work/code" "$work/flows"
cd "$work/code" || exit 1
flows=$work/flows
DL_DIR=$flows
export DL_DIR

last () { tail -1 "$work/out"; }
flow () { # flow RUN|RESUME ARGUMENT...: writes its output to $work/out
    word=$1
    shift
    timeout 300 dl flow "$word" --local "$@" >"$work/out" 2>&1
}
log () { cat "$work/flows/$1"/log; }
step () { # step FLOW STEP EXPRESSION: evaluate Python over the step's JSON, s
    dl flow show --json "$1" "$2" | python3 -c 'import json, sys
s = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$3"
}
conditions () { # conditions FLOW STEP: print the conditions that are true, with their messages
    step "$1" "$2" '" ".join(c["type"] + ":" + c["reason"] + (" (" + c["message"] + ")" if "message" in c else "") for c in s["conditions"] if c["status"] and c["type"] != "Created")'
}

cat >demo.conf <<'END'
name = "demo";
parameters = { text = "it's \"$HOME\""; n = 3; };
environment = { GREETING = "hi {text}"; };
steps = {
    end = { on_exit = true; entrypoint = "echo {outcome} [$DL_FLOW_FAILED]"; };
    join = { entrypoint = "cat {train.model} >{out.all}; echo accuracies {train.accuracy}, '{train.accuracy}'"; outputs = { all = "all.txt"; }; after = ["each"]; };
    prepare = {
        entrypoint = "sh prepare.sh {out.data} {text} \"{text}\" '{text}'";
        outputs = { data = "data.txt"; };
        values = ["shards"];
        code = ["prepare.sh"];
    };
    train = {
        foreach = "1..{n}";
        entrypoint = ["sh", "-c", "cat $1 >$2; echo $3 >>$2; echo accuracy=0.$3 >>$DL_VALUES", "x", "{prepare.data}", "{out.model}", "{item}"];
        outputs = { model = "model.txt"; };
        values = ["accuracy"];
    };
    test = { foreach = "1..{n}"; after_each = "train"; entrypoint = "tail -1 {train.model}"; };
    each = { foreach = "{prepare.shards}"; entrypoint = "echo {item} \"$DL_ITEM\" $GREETING"; };
    good = { after = "join"; when = "{prepare.shards} == \"a b c\" && {n} >= 3"; entrypoint = "echo good"; };
    bad = { after = "join"; when = "{n} > 3"; entrypoint = "echo bad"; };
    afterbad = { after = "bad"; entrypoint = "echo no"; };
    either = { after_any = ["bad", "good"]; entrypoint = "echo either"; };
};
END
cat >prepare.sh <<'END'
printf '%s\n' "$2" "$3" "$4" >$1
echo 'shards=["a", "b c"]' >>$DL_VALUES
END
flow run demo.conf
is "$? $(last)" "0 $work/flows/demo-0001: completed, 13 tasks run" "a flow of ten steps"
is "$(sed -n '1p;2p;3p' "$work"/flows/demo-0001/steps/prepare/0/a.1/data.txt | sort -u)" "it's \"\$HOME\"" "values reach the shell unchanged, in any quotes"
is "$(log demo-0001/steps/join/0/a.1)" "accuracies 0.1 0.2 0.3, 0.1 0.2 0.3" "fan-in: values"
is "$(grep -c . "$work"/flows/demo-0001/steps/join/0/a.1/all.txt)" 12 "and files"
is "$(log demo-0001/steps/each/1/a.1)" "b c b c hi it's \"\$HOME\"" "a list that a step has reported, and a variable"
is "$(log demo-0001/steps/test/1/a.1)" 2 "after_each"
is "$(dl flow show demo | awk '$2 == "skipped" { print $1 }' | sort | tr '\n' ' ')" "afterbad bad " "a condition, and its dependents"
is "$(conditions demo bad), $(conditions demo test)" "Succeeded:StepSkipped (its condition is false), Succeeded:StepCompleted" "as conditions"
is "$(log demo-0001/steps/end/0/a.1)" "completed []" "the exit handler"

# ---- the cache
flow run demo.conf
is "$(last)" "$work/flows/demo-0002: completed, 0 tasks run" "a second run runs nothing"
is "$(conditions demo train)" "Succeeded:StepCached" "and its steps say so"
flow run demo.conf n=4
is "$(last)" "$work/flows/demo-0003: completed, 8 tasks run" "another parameter: only what depends on it runs"
echo "# changed" >other.sh
flow run demo.conf
is "$(grep -c '^prepare: cached' "$work/out")" 1 "code = [...]: other code does not matter"
like "$(cat "$work/out")" '^train 0: ok' "without it all code matters"
like "$(cat "$work/out")" "^dl: since demo-0003 other.sh is new; steps without 'code' depend on all files" "and one line says which"
rm "$work"/flows/demo-0003/steps/train/*/a.1/model.txt "$work"/flows/demo-0001/steps/prepare/0/a.1/data.txt
flow run demo.conf
like "$(cat "$work/out")" '^prepare: ok' "a missing artifact is created again"
find "$work"/flows/demo-0004/steps/train -name model.txt -exec sh -c 'echo x >$1' sh {} \;
flow run demo.conf
like "$(cat "$work/out")" '^train 0: ok' "so is a changed one"
DL_FREEZE=false flow run demo.conf
is "$(last)" "$work/flows/demo-0007: completed, 13 tasks run" "without frozen code nothing is cached"
mkdir "$work/beside"
cp demo.conf prepare.sh "$work/beside"
(cd "$work/beside" && DL_DIR=. flow run demo.conf && DL_DIR=. flow run demo.conf)
is "$(last)" "$work/beside/demo-0002: completed, 0 tasks run" "flows beside the code are not part of it"

# ---- an escaped quote; dl flow names the files that changed since the first run
cat >quote.conf <<'END'
name = "quote"; parameters = { text = "a  ;b"; }; steps = { a = { entrypoint = "sh quote.sh \\\"{text}"; }; };
END
echo 'echo "$1"' >quote.sh
flow run quote.conf
is "$(log quote-0001/steps/a/0/a.1)" '"a  ;b' "an escaped quote does not start a quoted text"
echo 1 >new.sh
flow run quote.conf
like "$(cat "$work/out")" "^dl: since quote-0001 new.sh is new" "the second run says what has changed, too"
rm new.sh

# ---- failures
cat >fail.conf <<END
name = "fail";
steps = {
    first = { entrypoint = "echo 1 >>$work/first"; };
    flaky = { retries = 2; entrypoint = "echo 1 >>$work/flaky; test \$(wc -l <$work/flaky) -ge 3"; };
    breaks = { after = "first"; entrypoint = "test -e $work/mended || (printf 'not \\\\303\\\\244 mended\\\\377\\\\n'; exit 1)"; };
    rest = { after = "breaks"; entrypoint = "true"; };
    any = { after_any = "breaks"; entrypoint = "true"; };
    end = { on_exit = true; entrypoint = "echo {outcome} {failed_steps} >>$work/ends"; };
};
END
flow run fail.conf
is "$?" 1 "a flow that fails"
like "$(cat "$work/out")" "^dl: step breaks failed: exit status 1: not ä mended[?]; $work/flows/fail-0001/steps/breaks/0/a.1/log" "the reason and the log"
is "$(dl flow show fail | awk '/^[a-z]+ / && NF > 6 { print $1 "=" $2 }' | sort | tr '\n' ' ')" "any=ok breaks=failed end=ok first=ok flaky=ok rest=not step=state " "what is reported about it"
is "$(wc -l <"$work/flaky")" 3 "retries"
is "$(conditions fail flaky), $(conditions fail breaks | tr -cd ' -~'), $(conditions fail rest), $(conditions fail any)" \
    "Succeeded:StepCompleted, Failed:GivenUp (exit status 1: not  mended?), Failed:StepBeforeFailed (breaks), Succeeded:StepCompleted" "the conditions of steps"
is "$(step fail flaky '[c["reason"] for c in s["conditions"] if c["type"] == "Restarting" and not c["status"]]')" "['AttemptFailed']" "one that was retried"
like "$(dl flow show fail rest)" '^  Failed      since 20..-..-.. ..:..  StepBeforeFailed: breaks$' "dl flow show STEP prints them"
touch "$work/mended"
flow resume fail
is "$? $(last)" "0 $work/flows/fail-0001: completed, 3 tasks run" "dl flow resume continues from there"
is "$(wc -l <"$work/first")" 1 "and runs nothing twice"
is "$(conditions fail breaks), $(conditions fail rest)" "Succeeded:StepCompleted, Succeeded:StepCompleted" "then they have succeeded"
is "$(cat "$work/ends")" "failed breaks rest
completed " "the exit handler runs each time"
for what in 'outputs = { x = "x.txt"; };its command did not write the output .x.' 'values = ["v"];its command did not report the value .v.: echo v=' ';it was asked to stop'; do
    command=true
    [ "${what%%;*}" ] || command='kill -15 $PPID; sleep 60'
    echo "name = \"one\"; steps = { a = { entrypoint = \"$command\"; ${what%;*} }; };" >one.conf
    flow run one.conf
    like "$(cat "$work/out"; dl flow show one)" "${what##*;}" "fails: ${what##*;}"
done

# ---- each attempt of a step has its own working folder
mkdir own
cd own || exit 1
cat >save.sh <<'SH'
echo "$1" >model.txt
mkdir -p out
sleep 0.3
[ "$(cat model.txt)" = "$1" ] || exit 9
cp model.txt out/best.txt
SH
cat >keep.sh <<'SH'
echo x >>tries
[ "$(wc -l <tries)" -ge "$1" ]
SH
cat >own.conf <<'END'
name = "own"; parameters = { words = ["a", "b", "c", "d"]; };
steps = {
    train = { foreach = "{words}"; entrypoint = "sh save.sh {item}"; outputs = { model = "model.txt"; best = "out/best.txt"; }; };
    other = { entrypoint = "sh save.sh e"; };
    tried = { entrypoint = "sh keep.sh 3"; retries = 2; };
    clean = { entrypoint = "sh keep.sh 1; [ $(wc -l <tries) = 1 ] && [ -e {flow_dir}/again ] || { touch {flow_dir}/again; exit 1; }"; retries = 1; working_folder = "attempt"; };
    join = { after = ["clean", "tried", "other"]; entrypoint = "cat {train.best} {train.model} >all"; outputs = { all = "all"; }; };
};
END
flow run --workers=8 own.conf
is "$? $(last)" "0 $flows/own-0001: completed, 8 tasks run" "concurrent tasks that write one file name"
is "$(xargs <"$flows/own-0001/steps/join/0/a.1/work/all")" "a b c d a b c d" "outputs of scripts that do not know their folder"
is "$(wc -l <"$flows/own-0001/steps/tried/0/a.3/work/tries") $(wc -l <"$flows/own-0001/steps/clean/0/a.2/work/tries")" "3 1" "an attempt starts with the files of the previous one, or without"
# shellcheck disable=SC2011,SC2012
is "$(ls | xargs) $(ls -d "$flows"/own-0001/code/*/code/own* | wc -l)" "keep.sh own.conf save.sh 1" "nothing is left in the folder, nor beside the copy"
flow run own.conf
is "$(last)" "$flows/own-0002: completed, 0 tasks run" "and all is cached"
sed 's/^steps/working_folder = "shared"; &/; s/name = "own"/name = "shared"/' own.conf >shared.conf
sed -i '/train = /d; /join = /d; /clean = /d' shared.conf
flow run shared.conf
is "$? $(cd "$flows"/shared-0001/code/*/code/own && ls model.txt tries)" "0 model.txt
tries" "working_folder = shared: one folder for all"
# killed: the next attempt continues from the files that it wrote
cat >go.conf <<END
name = "go"; steps = { a = { entrypoint = "echo x >>tries; [ -e $work/go.on ] || sleep 1000; wc -l <tries"; }; };
END
sed -i 's/echo x/sh -c :; cat save.sh >\/dev\/null; echo x/' go.conf
dl flow run --local go.conf >"$work/out" 2>&1 &
runner=$!
wait_for 100 sh -c "[ -s $flows/go-0001/steps/a/0/a.1/work/tries ]"
kill -9 $runner "$(pgrep -f "^[^ ]*dl flow step -- $flows/go-0001")"
wait $runner
: >"$work/go.on"
flow resume go
is "$? $(cat "$flows"/go-0001/steps/a/0/a.*/log | tail -1) $(ls -d "$flows"/go-0001/code/*/code/own* | wc -l)" "0 2 1" "a killed step continues from what it wrote"
cat >hand.conf <<'END'
name = "hand"; steps = { a = { entrypoint = "sh save.sh a"; }; c = { after = "a"; entrypoint = "cat out/best.txt"; }; };
END
flow run hand.conf
like "$(cat "$work/out")" "^dl: step c failed: exit status 1: cat: .*; the step 'a' wrote out/best.txt in its own working folder: name it in 'outputs' there, and use \{a.NAME\} here; " "a file that another step wrote"
echo 'name = "w"; steps = { a = { entrypoint = "true"; working_folder = "trial"; }; };' >wrong.conf
is "$(dl flow run --dry-run wrong.conf 2>&1)" "dl: wrong.conf:1: 'working_folder' is \"trial\", but must be attempt, task or shared" "another word"
cd .. || exit 1
rm -r own

# ---- a sweep as a step
cp "$srcdir"/contrib/examples/flow/* .
like "$(timeout 300 dl flow run --local --workers=2 digits.conf 2>&1)" 'digits-0001: completed' "the example: a sweep whose best trial feeds the next step"
like "$(dl flow show digits tune)" 'lr = [0-9.e-]+' "with its values"
like "$(timeout 300 dl flow run --local digits.conf 2>&1)" 'digits-0002: completed, 0 tasks run' "and is cached"

cat >best.conf <<END
name = "best"; entrypoint = ["$builddir/tests/runtime/writer", "train"];
searcher = { name = "random"; metric = "loss"; max_trials = 2; max_length = 2; };
hyperparameters = { lr = { type = "log"; minval = -3; maxval = 0; }; };
END
echo 'name = "best"; steps = { s = { sweep = "best.conf"; }; c = { entrypoint = ["dl", "ckpt", "verify", "{s.checkpoint}"]; }; };' >bestflow.conf
flow run bestflow.conf
is "$? $(last)" "0 $work/flows/best-0001: completed, 2 tasks run" "its best checkpoint, too"
cat >pair.conf <<END
name = "pair"; entrypoint = "echo z={lr} a=9"; metrics = { pattern = "z={z} a={a}"; };
searcher = { name = "random"; metric = ["z", "a"]; max_trials = 1; };
hyperparameters = { lr = { type = "categorical"; vals = [1.5]; }; };
END
echo 'name = "pair"; steps = { s = { sweep = "pair.conf"; }; c = { entrypoint = "echo {s.metric} {s.lr} {s.trial}"; }; };' >pairflow.conf
flow run pairflow.conf
is "$? $(log pair-0001/steps/c/0/a.1)" "0 1.5 1.5 1" "of several metrics the first one"

# ---- the workers of a sweep outlive its step: the step waits for the sweep, whichever runner started it
cat >slow.conf <<END
name = "slow"; entrypoint = "while [ ! -e $work/go ]; do sleep 0.1; done; echo loss={lr}"; metrics = { pattern = "loss={loss}"; };
searcher = { name = "grid"; metric = "loss"; };
hyperparameters = { lr = { type = "categorical"; vals = [2.0, 1.0, 0.5, 0.25]; }; };
resources = { workers = 2; };
END
cat >slowflow.conf <<END
name = "slow"; steps = { tune = { sweep = "slow.conf"; }; use = { entrypoint = "echo lr={tune.lr} >>\$DL_VALUES"; values = ["lr"]; }; };
END
dl flow run --local slowflow.conf >"$work/out" 2>&1 &
runner=$!
wait_for 100 sh -c "ls $flows/slow-0001/steps/tune/0/sweep/slow-0001/trials/0002"
sweep=$flows/slow-0001/steps/tune/0/sweep/slow-0001
kill -9 $runner
wait $runner 2>/dev/null
for i in 1 2; do
    timeout 300 dl flow resume --local slow-0001 >"$work/slow.$i" 2>&1 &
done
# Both runners start an attempt of the step; each must wait for the sweep.
wait_for 100 sh -c "[ \$(ls $flows/slow-0001/steps/tune/0 | grep -c '^a[.]') -ge 2 ]"
wait_for 100 grep -q "nothing to resume\|worker" "$flows/slow-0001/steps/tune/0/a.2/log"
is "$(step slow-0001 tune 's["ok"]')$(dl show "$sweep" | head -1 | grep -o running)" 0running "a restarted step does not use the best so far"
: >"$work/go"
wait_for 250 grep -q completed "$work/slow.1" "$work/slow.2"
is "$(dl show "$sweep" | head -1 | grep -o completed)$(step slow-0001 use 's["results"][0]["values"]["lr"]')" "completed0.25" "it uses the best once the sweep has ended"
timeout 300 dl flow run --local slowflow.conf >"$work/out" 2>&1
is "$(tail -1 "$work/out") $(step slow-0002 use 's["results"][0]["values"]["lr"]')" "$flows/slow-0002: completed, 0 tasks run 0.25" "and so does the cache"

# ---- 20 steps, 5 kills: of dl flow step, and of dl flow run and resume
{
    echo 'name = "twenty"; steps = {'
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
        after=
        [ $i -gt 3 ] && after="after = [\"s$((i - 3))\", \"s$((i / 2))\"];"
        echo "s$i = { $after retries = 9; outputs = { o = \"o\"; }; entrypoint = \"sleep 0.2; echo $i >{out.o}\"; };"
    done
    echo 's20 = { entrypoint = "cat {s17.o} {s18.o} {s19.o} >{out.o}"; outputs = { o = "o"; }; }; };'
} >twenty.conf
timeout 300 dl flow run --local --workers=3 "$PWD/twenty.conf" >"$work/out" 2>&1 &
kills=0
while [ $kills -lt 5 ]; do
    sleep 0.1
    case $kills in
    1 | 4) victim=$(pgrep -f "^dl flow (run|resume) --local .*$work/.*twenty" | head -1) ;;
    *) victim=$(pgrep -f "^[^ ]*dl flow step -- $work/flows/twenty-0001" | head -1) ;;
    esac
    [ "$victim" ] && kill -9 "$victim" 2>/dev/null && kills=$((kills + 1)) || {
        dl flow ls | grep -q 'twenty-0001 *completed' && break
        pgrep -f "^dl flow (run|resume) --local .*$work/.*twenty" >/dev/null ||
            timeout 300 dl flow resume --local --workers=3 "$flows/twenty-0001" >>"$work/out" 2>&1 &
        continue
    }
    sleep 0.3
done
wait
gone () { ! pgrep -f "^[^ ]*dl flow step -- $work/flows/twenty-0001"; }
wait_for 60 gone
flow resume twenty
is "$? $(cat "$work"/flows/twenty-0001/steps/s20/0/a.*/o | tr '\n' ' ')" "0 17 18 19 " "20 steps complete in spite of $kills kills"
is "$(cat "$work"/flows/twenty-0001/log/0*/* | grep -o '"op":"done".*"step":"[^"]*"' | sed 's/.*"step"//' | sort -u | wc -l)" 20 "each has its result"

# ---- containers and environments, with stand-ins that run the command
mkdir "$work/fakes" "$work/made" venv venv/bin
export work
printf '#!/bin/sh\necho 1\n' >"$work/fakes/sbatch"
cat >"$work/fakes/podman" <<'END'
#!/bin/sh
[ "$1" = rm ] && exit
echo "$*" >>"$work/podman.args"
while [ "$1" != /bin/sh ]; do shift; done
export BOX=podman
exec "$@"
END
sed '/= rm/d; s/podman.args/srun.args/; s/BOX=podman/BOX=pyxis/; s/^echo/[ "$1" = --help ] \&\& { echo --container-mounts; exit; }; &/' "$work/fakes/podman" >"$work/fakes/srun"
printf '#!/bin/sh\necho venv "$@"\n' >venv/bin/python
chmod +x "$work"/fakes/* venv/bin/python
cat >box.conf <<END
name = "box";
container = { image = "r/a:1"; runtime = "podman"; };
parameters = { it = "it's"; };
steps = {
    a = { entrypoint = "echo \$BOX {it} \"\$A\" >{out.o}; echo v=3 >>\$DL_VALUES"; outputs = { o = "$work/made/o"; }; values = "v"; environment = { A = "1  2"; }; };
    b = { entrypoint = ["python", "{a.v}"]; environment = { venv = "venv"; }; };
    c = { entrypoint = "echo \$BOX {a.v}"; container = { image = "r/b:1"; runtime = "podman"; }; };
};
END
box () { PATH=$work/fakes:$PATH flow run box.conf; }
box
is "$? $(cat "$work/made/o")" "0 podman it's 1  2" "a step in the container of the flow, with its variables"
like "$(cat "$work/podman.args")" "--volume $work/code:$work/code --volume $work/flows:$work/flows --volume $work/made:$work/made .* r/a:1 /bin/sh" "which has access to the run, the code and the outputs"
is "$(log box-0001/steps/b/0/a.1)" "venv 3" "a step with its own virtual environment runs in no container"
is "$(log box-0001/steps/c/0/a.1)" "podman 3" "a step in another container"
box
is "$(last)" "$work/flows/box-0002: completed, 0 tasks run" "the second run is cached"
sed -i 's|r/b:1|r/b:2|' box.conf
box
is "$(last)" "$work/flows/box-0003: completed, 1 task run" "another image: another result"
cat >ranks.conf <<'END'
name = "ranks";
steps = { c = { entrypoint = "echo $BOX"; container = { image = "r/b:1"; runtime = "pyxis"; }; resources = { nodes_per_trial = 2; }; }; };
END
(
    PATH=$work/fakes:$PATH
    dl flow run ranks.conf
    dl flow step ranks-0001 "$(sha256sum "$work/flows/ranks-0001/flow.json" | cut -d' ' -f1)" c 1 0
) >"$work/out.ranks" 2>&1
is "$(log ranks-0001/steps/c/0/a.1)" pyxis "ranks in containers of pyxis"
like "$(cat "$work/srun.args")" "--nodes=2 .*--container-image=r/b:1 .*--container-env=[^ ]*DL_VALUES" "which srun starts"

# ---- SIGTERM to dl flow
printf 'name = "held"; steps = { a = { entrypoint = "exec sleep 1000"; }; };\n' >held.conf
timeout 300 dl flow run --local held.conf >out 2>&1 &
pid=$!
wait_for 300 [ -e "$work/flows/held-0001/steps/a/0/a.1/log" ]
kill $pid
wait $pid
is $? 4 "told to stop: exit status"
like "$(dl flow show held)" 'held-0001: stopped$' "the flow is stopped, and has not failed"

# SIGTERM: a step may save its work and continues in its next attempt; exit statuses mean what they mean for trainers.
cat >ends.conf <<END
name = "ends"; steps = {
    saves = { entrypoint = "trap 'echo x >>saved; exit 0' TERM; if [ -e saved ]; then cat saved; exit 0; fi; touch $work/begun; sleep 1000 & wait"; };
    again = { entrypoint = "echo x >>$work/again; test \$(wc -l <$work/again) -ge 3 || exit 75"; };
    never = { entrypoint = "echo x >>$work/never; exit 78"; retries = 5; };
    gpu = { entrypoint = "echo CUDA out of memory; exit 1"; };
};
END
timeout 300 dl flow run --local --workers=1 ends.conf >out 2>&1 &
pid=$!
wait_for 300 [ -e "$work/begun" ]
kill $pid
wait $pid
is "$? $(step ends saves 's["ok"]') $(conditions ends saves)" "4 0 Suspended:FlowStopped" "a step that was stopped and exited with 0 has no result"
flow resume ends
is "$? $(log ends-0001/steps/saves/0/a.2)" "1 x" "it continues from what it saved"
is "$(wc -l <"$work/again") $(wc -l <"$work/never")" "3 1" "status 75 does not count; status 78 is not retried"
like "$(cat "$work/out")" "^dl: step never failed: exit status 78: the program reports that a retry cannot help; " "and the reason says so"

# ---- GPUs of this machine: tasks that run at the same time get different ones
mkdir "$work/dev"
touch "$work/dev/nvidia0" "$work/dev/nvidia1"
cat >share.conf <<END
name = "share"; resources = { gpus_per_node = 1; };
steps = {
    one = { foreach = "1..3"; cache = false; entrypoint = "touch $work/on.{item}; echo \$CUDA_VISIBLE_DEVICES; while [ ! -e $work/share.go ]; do sleep 0.1; done"; };
    both = { cache = false; entrypoint = "echo \$CUDA_VISIBLE_DEVICES"; resources = { gpus_per_node = 2; }; };
    none = { cache = false; entrypoint = "touch $work/none"; resources = { gpus_per_node = 0; }; };
};
END
DL_DEVICE_FOLDER=$work/dev timeout 300 dl flow run --local --workers=8 share.conf >out 2>&1 &
runner=$!
wait_for 100 [ -e "$work/none" ]
wait_for 100 sh -c "[ \$(ls $work/on.* | wc -l) -eq 2 ]"
is "$(cd "$flows/share-0001/steps" && echo *) $(log share-0001/steps/one/0/a.1) $(log share-0001/steps/one/1/a.1)" "none one 0 1" "two tasks have one GPU each, others wait, one that needs none does not"
: >"$work/share.go"
wait $runner
is "$? $(log share-0001/steps/both/0/a.1)" "0 0,1" "and a step can have both"

# ---- bad input: one error line each
bad () { # bad NAME PATTERN TEXT [ARGUMENT...]
    name=$1 pattern=$2
    printf '%s\n' "$3" >bad.conf
    shift 3
    refused 2 "^dl: (bad.conf:)?.*$pattern" "$name" dl flow run --local bad.conf "$@"
}
H='name = "x"; parameters = { lr = 0.1; };
steps = {
    a = { entrypoint = "true"; outputs = { m = "/m"; }; };
'
bad "a cycle" "4: a cycle: 'b' waits for 'c' waits for 'b'" "$H b = { entrypoint = \"x\"; after = \"c\"; }; c = { entrypoint = \"x\"; after = \"b\"; }; };"
bad "an unknown step" "4: step 'abc': 'after' names the step 'ab', which does not exist; did you mean 'a'" "$H abc = { entrypoint = \"x\"; after = \"ab\"; }; };"
bad "an unknown reference" "4: step 'b': 'entrypoint' has \{lt\}: no parameter; did you mean 'lr'" "$H b = { entrypoint = \"x {lt}\"; }; };"
bad "an unknown output" "step 'a' has neither an output nor a value of that name" "$H b = { entrypoint = \"x {a.x}\"; }; };"
bad "one output of two steps" "4: step 'a' and step 'b' write the same output, '/m'" "$H b = { entrypoint = \"x\"; outputs = { k = \"/m\"; }; }; };"
bad "one output of many tasks" "all its tasks write '/k'" "$H b = { entrypoint = \"x\"; foreach = [1, 2]; outputs = { k = \"/k\"; }; }; };"
bad "a misspelt key" "1: unknown key 'nmae'; did you mean 'name'" 'nmae = "x"; steps = { a = { entrypoint = "true"; }; };'
bad "a misspelt group" "1: unknown key 'step'; did you mean 'steps'" 'name = "x"; step = { a = { entrypoint = "true"; }; };'
bad "an unknown key" "4: unknown key 'steps.b.afer'; did you mean 'after'" "$H b = { entrypoint = \"x\"; afer = \"a\"; }; };"
bad "an unknown resource" "unknown key 'steps.b.resources.partitio'; did you mean 'partition'" "$H b = { entrypoint = \"x\"; resources = { partitio = \"a\"; }; }; };"
bad "a sweep that is not there" "no.conf: cannot read" "$H b = { sweep = \"no.conf\"; }; };"
sed 's/^name = .*/name = "s"; entrypoint = "sh prepar.sh {lr}";/' best.conf >none.conf
bad "a sweep whose script is not there" "none.conf:1: 'entrypoint': there is no file 'prepar.sh'" "$H b = { sweep = \"none.conf\"; }; };"
bad "an input that is not there" "4: step 'b': the input .*/no.dat: No such file" "$H b = { entrypoint = \"x\"; inputs = [\"no.dat\"]; }; };"
bad "an image that is not there" "4: 'container': there is no image 'no.sif' in " "$H b = { entrypoint = \"x\"; container = \"no.sif\"; }; };"
bad "an environment that is not there" "4: 'environment.venv': there is no program 'no/bin/python'" "$H b = { entrypoint = \"x\"; environment = { venv = \"no\"; }; }; };"
bad "an unknown runtime" "4: 'container.runtime': unknown runtime 'podmann'; did you mean" "$H b = { entrypoint = \"x\"; container = { image = \"r\"; runtime = \"podmann\"; }; }; };"
bad "an unknown key of a container" "4: unknown key 'steps.b.container.imag'" "$H b = { entrypoint = \"x\"; container = { image = \"r\"; imag = 1; }; }; };"
bad "a container of a sweep" "4: step 'b': 'container' and 'environment' .* of its experiment file, 'best.conf': write them there" "$H b = { sweep = \"best.conf\"; container = \"r\"; }; };"
bad "a script that is not there" "4: 'entrypoint': there is no file 'prepar.sh' in $work/code, where the trials run; did you mean 'prepare.sh'" "$H b = { entrypoint = \"sh prepar.sh {lr}\"; }; };"
bad "a name with odd characters" "4: syntax error" "$H b/../c = { entrypoint = \"x\"; }; };"
bad "a name of the flow" "'name' is '../x'" 'name = "../x"; steps = { a = { entrypoint = "true"; }; };'
# The line must be that of the value, not of the step.
L="$H b = {
    entrypoint = \"x\";
"
for key in 'after = "ab"' 'inputs = ["no.dat"]' 'when = "{lr}"' 'foreach = "1..x"' 'foreach = []' 'set = ["a=1"]' 'sweep = "best.conf"' \
    'outputs = { k = "{lt}"; }' 'environment = { K = "{lt}"; }' 'container = "no.sif"' 'resources = { slots_per_trial = 3; nodes_per_trial = 2; }'; do
    bad "the line of $key" "bad.conf:6: " "$L $key; }; };"
done
bad "a condition" "'when': {lr}: " "$H b = { entrypoint = \"x\"; when = \"{lr}\"; }; };"
for when in '{lr} => 1' '{lr} = 1' '{lr} == a b' '{lr} >'; do
    bad "a condition: $when" "'when': {lr} " "$H b = { entrypoint = \"x\"; when = \"$when\"; }; };"
done
bad "a condition: in quotes" "remove the quotes around {lr}" "$H b = { entrypoint = \"x\"; when = \"'{lr}' == 'a'\"; }; };"
cat >when.conf <<'END'
name = "when"; parameters = { lr = 0.1; kind = "full"; other = "full"; five = 5; };
steps = {
    y1 = { entrypoint = "true"; when = "{lr} > 1 || {kind} == full"; };
    n1 = { entrypoint = "true"; when = "({lr} > 1 || {kind} == full) && {five} == 4"; };
    y2 = { entrypoint = "true"; when = "not {kind} == 'a b' && {lr} * 10 == 1"; };
    y3 = { entrypoint = "true"; when = "{kind} == {other} && {five} == 5.0"; };
    n2 = { entrypoint = "true"; when = "{kind} != {other} || {kind} == {five}"; };
    n3 = { entrypoint = "true"; when = "{five} == full"; };
};
END
timeout 300 dl flow run --local when.conf >out 2>&1
is "$? $(dl flow show when | awk '$2 == "skipped" { print $1 }' | sort | tr '\n' ' ')" "0 n1 n2 n3 " "conditions: or, parentheses, not, sums, texts"
sed -i 's/ n3 = .*/ n3 = { entrypoint = "true"; when = "{kind} > 3"; };/' when.conf
timeout 300 dl flow run --local when.conf >out 2>&1
ok $((! $?)) "a text compared as a number"
like "$(cat out)" "'when': {kind} > 3: " "is an error, not false"
bad "too wide" "'foreach' has too many elements" "$H b = { entrypoint = \"x\"; foreach = \"1..100000000\"; }; };"
E='name = "x"; steps = { v = { entrypoint = "true"; values = ["k", "l"]; }; w = { entrypoint = "true"; values = ["k"]; }; u = { entrypoint = "true"; };
    a = { foreach = "{v.k}"; entrypoint = "x"; }; b = { foreach = "1..2"; entrypoint = "x"; };
'
each () { printf '%s' "$E c = { entrypoint = \"x\"; after_each = \"$1\"; ${2:+foreach = \"$2\";} }; };"; }
for pair in "a {w.k}" "a {v.l}" "a 1..2" "a" "b 1..3" "b {v.k}" "b" "u 1..2"; do
    bad "after_each $pair" "step 'c': 'after_each' needs a 'foreach' as long as that of '${pair%% *}'$" "$(each $pair)"
done
for pair in "a {v.k}" "b 1..2"; do
    each $pair >good.conf
    runs 0 "after_each $pair is as long" dl flow run --dry-run good.conf
done
bad "a parameter" "bad.conf has no parameter 'lt'; did you mean 'lr'" "$H };" lt=1
bad "a value" "'lr=x': the value must be a number" "$H };" lr=x
bad "10000 steps" "more than 20000 settings" "name = \"x\"; steps = { $(seq -f 's%.0f = { entrypoint = "x"; };' 10000) };"
bad "1500 steps" "1500 steps: at most 1000; 'foreach' runs" "name = \"x\"; steps = { $(seq -f 's%.0f = { entrypoint = "x"; };' 1500) };"
is "$(ls -d "$work"/flows/x-* 2>/dev/null)" "" "none of them created a flow"
is "$(dl flow rum x 2>&1)" "dl: no command 'dl flow rum'; did you mean 'run'?" "an unknown word"

# ---- without Slurm
printf '#!/bin/sh\necho "sbatch: error: fetch_config: DNS SRV lookup failed" >&2\nexit 1\n' >sbatch
chmod +x sbatch
like "$(PATH=$PWD:$PATH dl flow run one.conf 2>&1; echo "=$?")" "step 'a': sbatch finds no Slurm here: use --local" "no Slurm"

# ---- GPUs of a step, and a flow that another version of dl made
echo 'name = "old"; steps = { a = { entrypoint = "true"; resources = { slots_per_trial = 2; nodes_per_trial = 2; }; }; };' >old.conf
printf '#!/bin/sh\necho "$*" >%s\nexit 1\n' "$work/asked" >sbatch
printf '#!/bin/sh\n' >squeue
chmod +x squeue
gpus () { # gpus RUN|RESUME NAME: print how many GPUs per node the job requests
    PATH=$PWD:$PATH timeout 300 dl flow "$@" >"$work/out" 2>&1
    grep -o 'gpus-per-node=[0-9]*' "$work/asked"
}
is "$(gpus run old.conf)" gpus-per-node=1 "slots_per_trial is shared by two nodes"
sed -i 's/"version": [0-9]*/"version": 2/' "$work/flows/old-0001/flow.json"
is "$(dl flow resume old 2>&1)" "dl: $work/flows/old-0001/flow.json: written by another version of dl" "a flow of another version"

# ---- graph; a flow that other users can write to or that was edited
like "$(dl flow graph demo.conf)" '"prepare" -> "train" \[style = solid\]' "dl flow graph of a file"
like "$(dl flow graph demo-0001)" '"bad" .*fillcolor = lightgrey' "and of a run"
dl flow graph -o x.txt demo.conf >out 2>&1
is "$? $(cat out)" "2 dl: --output: 'x.txt' must end in .svg, .png or .pdf" "another kind of picture"
is "$(dl flow stop demo)" "$work/flows/demo-0007: nothing was running" "dl flow stop of one that has ended"
mkdir nodot
ln -s "$(command -v dl)" nodot/dl
echo old >"$work/old.svg"
refused 1 "^dl: $work/old.svg was not written: dot, of graphviz, cannot be run: No such file or directory; without -o its text is printed$" \
    "no graphviz" env PATH="$PWD/nodot" dl flow graph -o "$work/old.svg" demo.conf
is "$(cat "$work/old.svg")" old "an old picture is kept"
if command -v dot >/dev/null; then
    dl flow graph -o "$work/demo.svg" demo.conf
    like "$(cat "$work/demo.svg")" '<svg' "as SVG"
fi
like "$(dl flow ls)" '^demo-0001 +completed' "dl flow ls"
is "$(dl flow ls --json | json 'd["flows"][0]["state"]')" completed "as JSON"
chmod g+w "$work/flows/fail-0001"
like "$(dl flow resume --local fail 2>&1)" 'others may write to this flow' "a flow in a folder that others can write to does not run"
chmod g-w "$work/flows/fail-0001"
echo '#' >>"$work/flows/fail-0001/flow.conf"
like "$(dl flow resume --local fail 2>&1)" 'flow.conf: it has changed since the flow was created' "nor does a changed flow.conf"
like "$(dl flow step demo-0001 0000 train 1 0 2>&1)" 'flow.json has changed since this job was submitted' "nor anything that the job was not submitted for"
done_testing
