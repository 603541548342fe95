#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Frozen code: what the trials run, its provenance, dl reproduce, dl diff.
. "$srcdir/tests/lib.sh"
umask 022 # with umask 077 every file has mode 600, so dl could not tell that key.txt is private
unset DL_DIR DL_FREEZE
HOME=$work/home
export HOME
mkdir -p home/data up/proj/src/data
cd up/proj || exit 1
proj=$(pwd -P)

conf () { # conf NAME ENTRYPOINT [MORE]
    write_conf "$1" "\"$2\"" 'name = "random"; max_trials = 3;' 'metrics = { pattern = "loss = {loss}"; };' 'resources = { workers = 1; };' "$3"
}
values () { # values NAME: print the results of all trials
    cat "$1"/log/0*/0* | grep '"op":"result"' | grep -o '"metric":[^,]*' | sort -u | tr -d '"'
}

# ---- a script that changes while its trials run
cat >src/train.sh <<'SH'
until [ -f "$1" ]; do sleep 0.1; done
. ./src/value.sh
echo "loss = $value"
echo "$DL_TRIAL" >>left.txt
SH
echo 'value=1' >src/value.sh
conf edit "sh src/train.sh $work/go"
timeout 300 dl run --local edit.conf >out 2>&1 &
wait_for 100 sh -c 'ls edit-0001/trials/*/a.1/log'
echo 'value=2' >src/value.sh
touch "$work/go"
wait $!
is $? 0 "an experiment whose script changes meanwhile"
is "$(values edit-0001)" metric:1.0 "all trials run the code from its start"
[ ! -e left.txt ] && [ "$(cat edit-0001/trials/*/a.1/work/left.txt | tr '\n' ' ')" = "1 2 3 " ]
ok $? "files they leave beside it stay with each attempt"
like "$(dl run --dry-run edit.conf)" "^code: [0-9]+ files of $proj, .*KiB, would be frozen; [0-9]+ others? stays? there" "--dry-run prints what would be frozen"
timeout 300 dl run --local --set code.freeze=false edit.conf >out 2>&1
is "$(values edit-0002) $(wc -l <left.txt)" 'metric:2.0 3' "without freezing they run in the folder"
holds "and there is no copy" [ ! -e edit-0002/code ]
timeout 300 env DL_FREEZE=false dl run --local edit.conf >out 2>&1
holds "DL_FREEZE=false" [ ! -e edit-0003/code.tar.zst ]
rm -r edit-000? left.txt

# ---- code.local: each worker unpacks its own copy into TMPDIR
mkdir "$work/tmp"
conf local 'pwd -P; sh src/train.sh go' 'code = { local = true; };'
touch go
TMPDIR=$work/tmp timeout 300 dl run --local local.conf >out 2>&1
is "$(grep -hc "^$work/tmp/slurm-dl\..*/code/.*/up/proj\.000.\.1$" local-0001/trials/*/a.1/log | tr -d '\n')" 111 "code.local: the trials run in a folder of the worker's own"
[ ! -e local-0001/code ] && rmdir "$work/tmp"
ok $? "and it is removed afterwards, also from the experiment"
runs 2 "but not for trials with several ranks" dl run --local --set resources.ranks_per_node=2 local.conf
like "$(cat out)" "^local.conf:[0-9]+: 'code.local' is for trials of one process" "and the message says so"
rm -r local-0001 go

# ---- identical code is stored once
conf same "sh src/train.sh $work/go"
for i in 1 2; do timeout 300 dl run --local same.conf >out 2>&1; done
is "$(stat -c %h same-0002/code.tar.zst)" 3 "two experiments with the same code share a file"
dl rm same-0001 >/dev/null
runs 0 "one continues when the other is removed" dl continue --local --trials=4 same-0002
rm -r same-0002/code
runs 0 "a missing copy is created again" dl continue --local --trials=5 same-0002
dl rm same-0002 >/dev/null
holds "removing the last one removes the file" [ ! -e .dl-code ]

# ---- which files are frozen, and which become links
head -c 2000000 /dev/zero >large.bin
echo 5 >src/data/x
echo 6 >../beside
printf '# comment\ndata/\n*.tmp\n' >.dlignore
echo a >a.tmp
echo b >b.out
ln -s src/value.sh value.link
echo key >key.txt
chmod 600 key.txt
mkdir -p keep
echo 7 >keep/data.tmp
cat >all.sh <<'SH'
for f in large.bin src/data a.tmp b.out key.txt; do [ -L $f ] || echo "no link: $f"; done
for f in src/value.sh keep/data.tmp; do [ ! -L $f ] || echo "a link: $f"; done
[ "$(readlink value.link)" = src/value.sh ] || echo "value.link leads elsewhere"
[ "$(cat src/data/x)$(cat ../beside)$(wc -c <large.bin)" = 562000000 ] || echo "not all is there"
[ -x ./all.sh ] && echo "loss = 1"
SH
chmod +x all.sh
conf all ./all.sh 'code = { exclude = [ "/b.out" ]; include = [ "keep/*" ]; };'
sed -i 's/^\*.tmp/a.tmp/' .dlignore
timeout 300 dl run --local all.conf >out 2>&1
is "$(cat all-0001/trials/0001/a.1/log)" "loss = 1" ".dlignore, code.exclude, large files, links, and files beside the folder"
is "$(stat -c %a all-0001/code.tar.zst all-0001/provenance.json | xargs)" "600 600" "others cannot read the code"
echo 8 >src/data/x
is "$(cat all-0001/code/*/up/proj/src/data/x)" 8 "linked files stay where they are"

mkdir -p o/runs && echo 9 >o/y
timeout 300 dl run --local --dir o/runs all.conf >out 2>&1
copy=$(echo "$proj"/o/runs/all-0001/code/*/up/proj)
is "$(cat "$copy/o/y") $(timeout 100 find -L "$copy" -name experiment.conf 2>&1)" "9 " "links of the copy lead neither to an experiment nor to the copy"
rm -r o

mkdir bin
printf '#!/bin/sh\necho "sbatch: error: Invalid partition name specified" >&2\nexit 1\n' >bin/sbatch
chmod +x bin/sbatch
mkdir refused
PATH=$proj/bin:$PATH timeout 100 dl run --dir refused all.conf >out 2>&1
is "$? $(ls -A refused)" "6 " "an experiment that sbatch rejects leaves no code behind"
rm -r bin refused

# ---- code that cannot be frozen
conf wrong ./all.sh 'code = { path = "src"; };'
runs 2 "a folder beside the experiment file" dl run --local wrong.conf
like "$(cat out)" "'code.path' $proj/src must be the folder of the experiment file, or one above it" "a line says so"
cp all.sh "$HOME"
conf "$HOME/home" "sh all.sh" 'max_restarts = 0;'
like "$(cd "$HOME" && dl run --local --no-workers home.conf 2>&1)" "^dl: the code is not frozen: .*: $HOME is a home folder: put" "a home folder is not frozen"
conf none 'echo loss = 1'
like "$(dl run --dry-run none.conf)" '^code: not frozen: the entrypoint names no file' "a command without files"
mkdir big
for i in $(seq 70); do head -c 1000000 /dev/zero >"big/$i"; done
like "$(dl run --dry-run all.conf)" "^code: [0-9]+ files of $proj, .* would be frozen \(only text: there is too much\)" "too many files: text is frozen anyway"
cp all.sh big/code.sh
timeout 300 dl run --local --set searcher.max_trials=1 --set 'name="text"' all.conf >out 2>&1
like "$(cat out)" "^dl: $proj has more than 64 MiB or 20000 files: only text is frozen" "a line says so"
is "$(cd text-0001/code/*/up/proj && find . -name code.sh -type f; find . -path './big/1' -type l)" "./big/code.sh
./big/1" "the other files are linked"
rm big/code.sh
timeout 300 dl run --local --set searcher.max_trials=1 --set 'name="text"' all.conf >out 2>&1
# shellcheck disable=SC2144
holds "and a folder without text is linked as a whole" [ -L text-0002/code/*/up/proj/big ]
mkdir runs
head -c 2000000 /dev/zero >runs/best.pt
echo 'echo $1 >runs/best.pt; echo $1 >runs/last.txt; sleep 0.3; [ "$(cat runs/*)" = "$1
$1" ] && echo "loss = $1"' >write.sh
conf write 'sh write.sh {x}'
timeout 300 dl run --local --set resources.workers=3 --set 'name="text"' write.conf >out 2>&1
is "$? $(wc -c <runs/best.pt) $(ls runs)" "0 2000000 best.pt" "but each attempt has its own copy of one with outputs"
rm -r big runs write.sh text-000?

# ---- code that is fixed before the first result
echo 'exit 3' >fault.sh
conf fault 'sh fault.sh'
runs 11 "a fault shared by all trials" dl run --local fault.conf
echo 'echo loss = 4' >fault.sh
timeout 300 dl resume --local fault-0001 >out 2>&1
is "$? $(values fault-0001)" "0 metric:4.0" "fixed and resumed: the trials run the new code"
like "$(cat out)" '^the code has changed, and there is no result yet: the trials run the current code' "a line says so"
echo 'echo loss = 5' >fault.sh
timeout 300 dl continue --local --trials=5 fault-0001 >out 2>&1
is "$(values fault-0001)" metric:4.0 "once there is a result the code stays"
is "$(timeout 100 dl reproduce fault-0001 | grep -c '^reproduced: loss is 4 ')" 1 "and reproducing uses it"
holds "both exist" [ "$(find . -maxdepth 2 -name 'code*.tar.zst' -path './fault*' | wc -l)" -eq 2 ]

# ---- an archive that was replaced
cp -r all-0001 bad-0001
rm -r bad-0001/code
echo 'echo loss = 666' >all.sh
tar -cf - all.sh | zstd -q >new.zst 2>/dev/null || cp all.sh new.zst
mv -f new.zst bad-0001/code.tar.zst
runs 5 "another archive is refused" dl continue --local --trials=4 bad-0001
like "$(cat out)" "^dl: $proj/bad-0001/code.tar.zst: this is not the code that was frozen; refusing to run it" "a line says so"
holds "and nothing is unpacked" [ ! -e bad-0001/code ]

# ---- provenance, dl reproduce, dl diff
cat >seed.sh <<'SH'
. ./src/value.sh
echo "loss = $value.$DL_SEED"
SH
conf seed 'sh seed.sh {x}' 'environment = { KEY = "a"; };'
timeout 300 dl run --local --set 'environment.KEY="secret"' seed.conf >out 2>&1
echo 'value=3' >src/value.sh
out=$(timeout 100 dl reproduce seed-0001 2 2>&1)
is $? 0 "a trial gives the same metric again"
like "$out" '^reproduced: loss is 2.*, and was 2' "and says so"
like "$out" '^code: [0-9a-f]{12}, as it was frozen' "with the code from then"
like "$(dl reproduce --dry-run seed-0001 2)" '^command: sh seed.sh 0\.' "--dry-run has the command"
none=$(timeout 100 dl run --no-workers seed.conf)
is "$(dl reproduce "$none" 2>&1; echo $?)" "dl: $none: the experiment has no result to compare with
2" "an experiment without results"
rm -r "$none"
like "$(dl best seed-0001)" 'and compare: dl reproduce seed-0001 [0-9]' "dl best names it"

# A trial of several ranks runs in a job that salloc creates, as a step.
mkdir "$work/bin"
printf '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\necho "a step of job $SLURM_JOB_ID"\nexec "$@"\n' >"$work/bin/srun"
printf '#!/bin/sh\necho "salloc $*"\nwhile case $1 in --*) ;; *) false ;; esac; do shift; done\nSLURM_JOB_ID=7 exec "$@"\n' >"$work/bin/salloc"
chmod +x "$work/bin/srun" "$work/bin/salloc"
timeout 300 env PATH="$work/bin:$PATH" DL_FREEZE=false dl run --no-workers --set resources.ranks_per_node=2 --set 'name="ranks"' seed.conf >out 2>&1
ranks="ranks-0001"
SLURM_JOB_ID=7 PATH=$work/bin:$PATH timeout 300 dl worker --slot 1_0 $ranks >out 2>&1
out=$(PATH=$work/bin:$PATH timeout 100 dl reproduce $ranks 2 2>&1)
is $? 0 "a trial of two ranks"
like "$out" "^salloc --nodes=1 --ntasks=2 --ntasks-per-node=2 .*dl reproduce $proj/$ranks 2$" "in a job of its own"
like "$out" "^a step of job 7$" "as a step"
like "$out" "^command: sh seed.sh 0" "whose command is printed"
like "$out" '^reproduced: loss is 3' "gives the same metric again"
like "$(PATH=$work/nowhere "$builddir/launcher/dl" reproduce $ranks 2 2>&1)" '^dl: salloc: No such file or directory: trials of several ranks need Slurm$' "without Slurm"
rm -r ranks-000?

timeout 300 dl run --local --set searcher.max_trials=4 seed.conf >out 2>&1
out=$(dl diff seed-0001 seed-0002)
is $? 1 "two different experiments"
is "$(printf '%s\n' "$out" | sed 's/"[0-9a-f]\{12\}"/DIGEST/g' | tr '\n' '|')" \
    'settings:|  environment.KEY: "secret" -> "a"|  searcher.max_trials: 3 -> 4|code:|  src/value.sh: DIGEST -> DIGEST|' "settings and files"
timeout 300 dl run --local --set searcher.max_trials=4 seed.conf >out 2>&1
is "$(dl diff seed-0002 seed-0003; echo $?)" 0 "two equal ones"
timeout 300 dl run --local --set code.freeze=false seed.conf >out 2>&1
sed -i 's/loss = /loss = 1/' seed.sh
out=$(timeout 100 dl reproduce seed-0004 1)
is $? 1 "code that was not frozen, and has changed"
like "$out" '^not reproduced: loss is 13.*, and was 3' "the metric differs"
out=$(dl show --provenance seed-0001)
like "$out" "^command: .*dl run --local --set environment.KEY=\* seed.conf" "the command, without secrets"
like "$out" "^code: [0-9a-f]{64} of $proj, in code.tar.zst" "the code"
grep -q secret seed-0001/provenance.json seed-0001/log/0*/0*
is $? 1 "no secret is recorded"
is "$(dl show --provenance --json seed-0001 | grep -c '"host"')" 1 "as JSON"
sed -i 's/root/boot/' seed-0002/provenance.json
printf ' ' >>seed-0002/provenance.json
like "$(dl show --provenance seed-0002 2>&1)" "seed-0002/provenance.json: this is not the experiment's original record" "a record that was changed"

# ---- scripts that are named by an absolute path
conf outside "sh $proj/seed.sh"
timeout 300 dl run --local --set searcher.max_trials=1 outside.conf >out 2>&1
is "$? $(grep -c 'is named by its absolute path' out)" "0 0" "a script of the folder by its whole path is frozen"
mkdir "$work/else"
cp seed.sh "$work/else"
conf outside "sh $work/else/seed.sh"
like "$(dl run --dry-run outside.conf 2>&1)" "^dl: $work/else/seed.sh is named by its absolute path and is not frozen" "--dry-run: a script of another folder"
timeout 300 dl run --local --set searcher.max_trials=1 outside.conf >out 2>&1
is "$? $(grep -c 'is named by its absolute path' out)" "0 1" "dl run says it, too"
rm -r outside*

# ---- comparing with the current folder
is "$(cat seed-0001/.gitignore .dl-code/.gitignore | xargs)" "* *" "git ignores what dl creates"
cp seed.sh seed.old
conf change "sh seed.sh {x}; [ -f $work/go3 ] || [ \$DL_TRIAL = 1 ] || sleep 1000"
timeout 300 dl run --local change.conf >"$work/change.out" 2>&1 &
wait_for 100 sh -c 'cat change-0001/log/0*/0* | grep result'
is "$(dl diff change-0001 .; echo $?)" 0 "dl diff with a folder that has not changed"
dl pause change-0001 >"$work/change.out2" 2>&1
wait $!
echo '# edited' >>seed.sh
is "$(dl diff change-0001 . | sed 's/"[0-9a-f]*"/DIGEST/g' | xargs)" "code: seed.sh: DIGEST -> DIGEST" "and with one that has"
dl diff change-0001 . >"$work/change.out" 2>&1
is $? 1 "exit status"
touch "$work/go3"
timeout 300 dl resume --local change-0001 >"$work/change.out" 2>&1
like "$(cat "$work/change.out")" "^dl: $proj/change-0001: the code has changed since it was frozen; the trials keep running the old code, because it has results: 'dl diff change-0001 $proj' shows" "dl resume says that the code has changed"
mv seed.old seed.sh
rm -r change*

# ---- versions of Python packages
mkdir -p site/one-1.2.10.dist-info site/two-3.4.5.egg-info
echo 'print("loss = 1")' >pack.py
conf pack "$(command -v python3) pack.py"
PYTHONPATH=$PWD/site timeout 300 dl run --no-workers pack.conf >out 2>&1
is "$(dl show --provenance pack | grep -E '^  (one|two) ' | tr '\n' '|')" "  one 1.2.10|  two 3.4.5|" "packages have their full versions"
rm -r pack* site

# ---- a git work tree
if git --version >/dev/null 2>&1; then
    mkdir -p ../repo/conf
    cd ../repo || exit 1
    git init -q .
    printf 'ignored/\n' >.gitignore
    mkdir ignored
    echo 'echo loss = $(cat value.txt)$(cat ignored/x)$(cat new.txt); [ ! -L ignored ] && git rev-parse HEAD' >train.sh
    echo 1 >value.txt
    echo 0 >ignored/x
    git add . && git -c user.name=u -c user.email=u@example.org commit -qm first
    echo 2 >value.txt
    echo 4 >new.txt
    conf conf/git 'cd .. && sh train.sh'
    timeout 300 dl run --local conf/git.conf >out 2>&1
    is "$(values git-0001)" metric:204.0 "tracked files as they are now, and new ones, and ignored ones"
    like "$(dl show --provenance git-0001)" "^git: $(git rev-parse HEAD) \(.*\), and this difference:" "the commit"
    like "$(dl show --provenance git-0001)" '^\+2$' "and the difference"
    is "$(tail -1 git-0001/trials/0001/a.1/log)" "$(git rev-parse HEAD)" "git works in the copy"
    # a submodule inside a submodule
    for repo in inner outer; do
        git init -q ../$repo
        echo 10 >../$repo/value.txt
        [ $repo = inner ] || git -C ../outer -c protocol.file.allow=always submodule --quiet add "$PWD/../inner" lib
        git -C ../$repo add . && git -C ../$repo -c user.name=u -c user.email=u@example.org commit -qm first
    done
    git -c protocol.file.allow=always submodule --quiet add "$PWD/../outer" sub
    git -c protocol.file.allow=always submodule --quiet update --init --recursive
    echo 20 >sub/lib/value.txt
    echo 3 >sub/new.txt
    echo 'until [ -f $1 ]; do sleep 0.1; done; echo loss = $(cat sub/value.txt)$(cat sub/lib/value.txt)$(cat sub/new.txt)' >train.sh
    rm -r git-0001
    conf conf/git "cd .. && sh train.sh $work/go2"
    timeout 300 dl run --local conf/git.conf >out 2>&1 &
    wait_for 100 sh -c 'ls git-0001/trials/*/a.1/log'
    for file in sub/value.txt sub/lib/value.txt sub/new.txt; do echo 9 >$file; done
    touch "$work/go2"
    wait $!
    is "$(values git-0001)" metric:10203.0 "files of submodules are frozen, tracked and new"
else
    skip "git" "no git"
fi

done_testing
