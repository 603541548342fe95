#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What users see when workers died, and when files are damaged or missing.
. "$srcdir/tests/lib.sh"
python=/usr/bin/python3
"$python" -c 'import h5py' 2>/dev/null || python=

conf () { # conf NAME ENTRYPOINT SEARCHER-LINES
    write_conf "$1" "\"$2 # {x}\"" "$3" 'worker = { heartbeat = 1; lease = 4; grace = 5; };'
}

seconds () { # seconds since boot, which clock changes do not affect
    read -r now rest </proc/uptime
    echo "${now%.*}"
}

entries_of () { # entries_of RESULTS: print how many log entries it covers, and the state
    "$python" -c 'import h5py, sys; a = h5py.File(sys.argv[1]).attrs; print(a["entries"], a["state"].decode() if isinstance(a["state"], bytes) else a["state"])' "$1"
}

# ---- results.h5 whose last writer was killed: a reader completes it
conf end 'cp end-0001/results.h5 end-0001/early.h5; dl log loss=$DL_TRIAL; : {x}' 'name = "random"; max_trials = 4; max_length = 1;'
runs 0 "a sweep ends" dl run --local end.conf
entries=$(ls end-0001/log/000000 | wc -l)
holds "results.h5 exists before the end" [ -f end-0001/early.h5 ]
for reader in 'dl show end' 'dl wait end'; do
    cp end-0001/early.h5 end-0001/results.h5
    runs 0 "$reader" $reader
    if [ "$python" ]; then
        is "$(entries_of end-0001/results.h5)" "$entries completed" "$reader writes what the dead worker should have written"
    else
        holds "$reader writes what the dead worker should have written" [ "$(tail -c 32 end-0001/results.h5 | od -An -tx1)" != "$(tail -c 32 end-0001/early.h5 | od -An -tx1)" ]
    fi
done
rm end-0001/results.h5
dl show end >out
holds "or everything" [ -f end-0001/results.h5 ]
dl label end kept >out
before=$(stat -c %i end-0001/results.h5)
dl show end >out
is "$(stat -c %i end-0001/results.h5)" "$before" "a label does not rewrite it"

# ---- ^C, and nobody resumes
conf quit 'exec sleep 1000' 'name = "random"; max_trials = 2; max_length = 1;'
timeout 300 dl run --local quit.conf >out 2>&1 &
pid=$!
wait_for 300 [ -d quit-0001/trials/0002/a.1 ]
kill -INT "$(pgrep -P $pid)"
wait $pid
is $? 4 "^C: exit status"
is "$(tail -1 out)" "stopping the workers: trials save checkpoints; run 'dl resume --local quit-0001' to continue" "how to continue"
is "$(dl show --csv --columns=attempts quit | tail -n +2 | xargs)" "1 1" "an attempt that has not begun is not counted"
is "$(dl pause quit)" "$work/quit-0001: paused: no worker was running; run 'dl resume' to continue" "pause: no worker is running"

# ---- damaged rows and missing attempts
cp -r end-0001 rows-0001
rows=$work/rows-0001/trials/0002/a.1/metrics.h5
[ -z "$python" ] || "$python" - "$rows" <<'END2'
import sys
import h5py
with h5py.File(sys.argv[1]) as f:
    at = f["metrics"].id.get_offset() + 32 + 16
with open(sys.argv[1], "r+b") as f:
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 1]))
END2
if [ "$python" ]; then
    rm rows-0001/results.h5
    like "$(dl show rows-0001)" "^metrics of 1 trial are damaged: .*'dl show rows-0001 TRIAL'" "dl show says how many trials have damaged metrics"
    dl show rows-0001 2 >out 2>err
    is $? 5 "dl show of such a trial: exit status"
    like "$(cat err)" "^dl: $rows: damaged: 1 row is lost, the first is number 1" "the file and the rows"
    dl export --format=h5 --output=x.h5 rows-0001 2>err
    is $? 5 "dl export: exit status"
    like "$(cat err)" "^dl: $rows: damaged: 1 row is lost" "the same"
    is "$("$python" -c 'import h5py; f = h5py.File("x.h5"); print(list(f["covered"][:]), len(f["metrics"]))')" "[1, 0, 1, 1] 3" \
        "lost rows do not count as covered"
else
    skip "damaged rows" "no Python with h5py (python3-h5py)"
fi
cp -r end-0001 gone-0001
rm -r gone-0001/trials/0003/a.1 gone-0001/results.h5
like "$(dl show gone-0001)" '^metrics of 1 trial are damaged' "an accepted attempt whose folder is missing"
dl show gone-0001 3 >out 2>err
is $? 5 "its trial: exit status"
like "$(cat err)" "^dl: $work/gone-0001/trials/0003/a.1: missing, although the result" "the folder"
lost="^dl: $work/gone-0001/trials/0003/a.1: missing, although the result .*was accepted"
case $(dl report --output=p.html end-0001 2>&1) in
p.html)
    runs 5 "dl report of it: exit status" dl report --output=p.html gone-0001
    like "$(cat out)" "$lost \(the rest is on the page\)$" "and what its page lacks"
    ;;
*) skip "dl report" "dl was built without D3" ;;
esac
if command -v gnuplot >/dev/null; then
    runs 5 "dl plot of it: exit status" dl plot --output=p.svg gone-0001 curves
    like "$(cat out)" "$lost \(the rest is drawn\)$" "and what it lacks"
else
    skip "dl plot" "no gnuplot"
fi
timeout 300 dl continue --local --trials=5 gone-0001 >out 2>err
is $? 0 "dl continue of it"
is "$(grep -c "^dl: $work/gone-0001/trials/0003/a.1: missing, .*(1 trial is so)" err)" 1 "reports it once"

# ---- a damaged log
cp -r end-0001 hole-0001
rm hole-0001/log/000000/00000003
cp -r end-0001 planted-0001
touch planted-0001/log/000000/00000099
start=$(seconds)
timeout 300 dl ls >out
is "$(grep -c ' damaged' out)" 2 "dl ls says which are damaged"
like "$(cat out)" '^end-0001 +completed' "and lists the others"
for e in hole planted; do
    timeout 300 dl wait --timeout=2 $e-0001 2>err
    is $? 5 "dl wait, $e"
    like "$(cat err)" '^dl: .*/log/000000/0.*: missing, but later entries exist' "$e: the entry"
done
[ $(($(seconds) - start)) -lt 40 ]
ok $? "dl does not wait for a missing entry"
ln -s .00000000000000000000000000000000 hole-0001/log/000000/00000003
start=$(seconds)
timeout 300 dl show hole-0001 >out 2>err
is $? 5 "a dangling link"
[ $(($(seconds) - start)) -lt 30 ]
ok $? "dl does not wait for it"
rm -r hole-0001 planted-0001

# ---- temporary files of killed writers
cp -r end-0001 left-0001
for at in . log/000000 workers; do
    touch -d '10 minutes ago' "left-0001/$at/.0123456789abcdef0123456789abcdef"
done
# A file that is being written, a user's file, and files that symbolic links may point to.
touch left-0001/.fedcba9876543210fedcba9876543210
touch left-0001/.profile
cp -r left-0001 soft-0001
for at in . log/000000 workers; do
    ln -s .0123456789abcdef0123456789abcdef "soft-0001/$at/name"
done
like "$(dl gc --dry-run left-0001)" '^would delete 3 files' "dl gc --dry-run finds hidden files of killed writers"
like "$(dl gc left-0001)" '^deleted 3 files' "dl gc deletes them"
is "$(find left-0001 -name '.*' | sort | tr '\n' ' ')" \
    "left-0001/.fedcba9876543210fedcba9876543210 left-0001/.gitignore left-0001/.profile " "and nothing else"
like "$(dl gc soft-0001)" '^deleted 0 files' "where names are symbolic links nothing hidden is removed"

# ---- the folder of the workers cannot be read
cp -r end-0001 blind-0001
rm -r blind-0001/workers
refused 3 "^dl: $work/blind-0001/workers: No such file or directory\$" "dl gc without workers/" dl gc blind-0001
: >blind-0001/workers
refused 7 "^dl: $work/blind-0001/workers: Not a directory\$" "dl gc with a file as workers/" dl gc blind-0001
before=$(ls blind-0001/log/000000)
for command in "continue --trials=99" retry resume; do
    refused 7 "^dl: $work/blind-0001/workers: Not a directory\$" "dl $command with a file as workers/" dl $command --local blind-0001
done
is "$(ls blind-0001/log/000000)" "$before" "they publish nothing"
rm -r blind-0001

# ---- no worker is left
touch on
conf idle "while [ -f $work/on ]; do sleep 0.1; done" 'name = "random"; max_trials = 4; max_length = 1;'
dl run --local idle.conf >out 2>&1 & # no timeout(1), so that $! is dl itself, which is killed below
pid=$!
wait_for 300 sh -c '[ "$(ls -d idle-0001/trials/*/a.1/log | wc -l)" -ge 2 ]'
like "$(dl ls)" '^idle-0001 +running +random' "the experiment runs"
dl continue --detach idle-0001 >out2 2>&1
is $? 2 "dl continue refuses it"
kill -9 $pid # otherwise it starts new workers
# shellcheck disable=SC2046
kill -9 $(pgrep -f "worker --slot local-.* -- $work/idle-0001$")
holds "dl ls says that no worker runs, and since when" wait_for 300 sh -c "dl ls | grep -q '^idle-0001 *running, no worker for '"
like "$(dl show idle-0001)" 'running, but no worker is left: the last one ended' "and so does dl show"
like "$(dl ls --json)" '"state": *"running"' "scripts get the state"
echo 'dl: the disk is on fire' >>"$(ls -t idle-0001/workers/*.log | head -n 1)"
like "$(dl show idle-0001)" '^  \| dl: the disk is on fire' "dl show has the last words of a worker"
dl kill idle-0001 >out 2>&1
rm on

# ---- two users continue the same experiment
conf more "while [ -f $work/on ]; do sleep 0.1; done; dl log loss=1" 'name = "random"; max_trials = 2; max_length = 1;'
timeout 300 dl run --local more.conf >out 2>&1
touch on
timeout 300 dl continue --local --trials=3 more >out 2>&1 &
pid=$!
wait_for 300 [ -f more-0001/trials/0003/a.1/log ]
dl continue --detach --trials=3 more >out2 2>&1
is $? 0 "an experiment that another command has continued runs"
is "$(cat out2)" "$work/more-0001" "its folder"
dl continue --detach --trials=4 more >out2 2>&1
is $? 2 "but no further than requested"
rm on
wait $pid
is $? 0 "it ends"

# ---- several results between two reads of the log: each gets its line
conf fast 'dl log --step $DL_LENGTH loss=$DL_TRIAL' 'name = "asha"; max_trials = 9; max_length = 9; divisor = 2; max_rungs = 4;'
timeout 300 dl run --local fast.conf >out 2>&1
is "$(grep -c ' length .* loss ' out)" "$(count fast-0001 result)" "dl run prints a line for each result"

# ---- a missing log, an interrupted creation, a full disk
cp -r end-0001 gone-0001
rm -r gone-0001/log
is "$(dl show gone-0001 2>&1; echo $?)" "dl: $work/gone-0001/log: missing, although there are trials: restore this folder from a backup
5" "a missing log"
dl rm gone-0001 >out 2>&1
is "$? $(ls gone-0001/trials | wc -l)" "5 5" "rm asks for --force"
like "$(dl ls)" '^gone-0001 +damaged .* 0 loss *$' "ls: no date"
cp -r end-0001 edit-0001
sed -i 's/max_trials = 4/max_trials = 2/' edit-0001/experiment.conf
is "$(dl show edit-0001 2>&1; echo $?)" "dl: $work/edit-0001/experiment.conf: changed since the experiment was created, and its log no longer matches: restore this file
5" "an experiment.conf that has changed"
rm -r edit-0001 gone-0001/trials/*
is "$(dl show gone-0001 2>&1; echo $?)" "dl: $work/gone-0001: its creation was interrupted; 'dl rm gone-0001' removes it
3" "nothing had begun"
runs 0 "it is removed" dl rm gone-0001
if unshare -Urm true 2>/dev/null; then
    mkdir full
    unshare -Urm sh -c 'mount -t tmpfs -o size=64k none full && cp end.conf full && cd full || exit 9
        : >big
        for size in 60 56 52 48 40 32; do
            head -c ${size}k /dev/zero 2>/dev/null >big
            timeout 300 dl run --detach --no-workers end.conf 2>../err && break
            echo "$? $(wc -l <../err) $(ls -A | xargs)"
        done' >out 2>&1
    is "$(sort -u out | grep -v '^/')" "7 1 big end.conf" "dl run on a full disk: one line, and nothing is left"
    # Commands that end an experiment must free its nodes even on a full disk.
    mkdir bin
    printf '#!/bin/sh\necho 41\n' >bin/sbatch
    printf '#!/bin/sh\necho "$*" >>%s/cancelled\n' "$work" >bin/scancel
    chmod +x bin/sbatch bin/scancel
    unshare -Urm sh -c 'PATH=$PWD/bin:$PATH
        mount -t tmpfs -o size=1m none full && cp end.conf full && cd full || exit 9
        for left in reserve nothing; do
            for command in pause stop kill; do
                rm -rf fill end-0001
                timeout 300 dl run --detach end.conf >/dev/null 2>&1
                [ $left = reserve ] || find end-0001 -maxdepth 1 -name "*reserve*" -delete
                cat /dev/zero >fill 2>/dev/null
                : >../cancelled
                timeout 300 dl $command end >../said 2>&1
                echo "$left $command $? $(cat ../cancelled) $(dl ls | sed -n "s/^end-0001 *\([a-z]*\) .*/\1/p") $(grep -v "^/" ../said)"
            done
        done' >out 2>&1
    full='dl: /.*full/end-0001/log/000000/00000003: cannot write: No space left on device; its jobs were cancelled, the request is not in the log: make room, then'
    is "$(grep -c "^reserve pause 0 --state=PENDING -- 41 paused *\$\|^reserve stop 0 --state=PENDING -- 41 stopped *\$\|^reserve kill 0 -- 41 killed *\$" out)" 3 "pause, stop and kill on a full disk: there is room for the request"
    is "$(grep -c "^nothing \([a-z]*\) 7 -- 41 running $full 'dl \1 end-0001' again\$" out)" 3 "without room the jobs are cancelled, and one line says what to do"
    [ "$(grep -c . out)" -eq 6 ] || sed 's/^/# /' out
else
    skip "a full disk" "no namespaces"
fi

# ---- a node whose HDF5 is broken
mkdir broken
: >"broken/$(sed -n 's/^#define HDF5_SONAME "\(.*\)"/\1/p' "$builddir/config.h")"
dir=$(timeout 100 dl run --no-workers end.conf 2>&1)
LD_LIBRARY_PATH=$work/broken timeout 100 dl worker "$dir" >out 2>&1
is "$? $(count "$dir" begin)" "127 0" "a worker without HDF5 starts no trial"
like "$(cat out)" '^dl: HDF5 cannot be loaded: ' "and says why"
done_testing
