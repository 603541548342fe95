#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reading another user's experiment file, flow or work tree ends soon, with a message, and runs nothing of it.
. "$srcdir/tests/lib.sh"
limit=300 # seconds for a command that must not block
head="name = \"x\"; entrypoint = \"true\"; searcher = { name = \"random\"; metric = \"loss\"; max_trials = 1; };"

refused_soon () { # refused_soon NAME PATTERN COMMAND...: within 10 s of CPU time, a hundred times what it needs
    name=$1
    pattern=$2
    shift 2
    # shellcheck disable=SC3045
    (ulimit -t 10 && exec timeout "$limit" "$@") >out 2>&1 </dev/null
    like "$? $(wc -l <out) $(cat out)" "^(2|3) 1 .*$pattern" "$name: one line, without delay"
}

# ---- @include
mkfifo pipe
ln -s /dev/zero zero
ln -s pipe link
mkdir folder
truncate -s 100M big
yes '# a line of 64 bytes, which many other ones follow, all the same' 2>/dev/null | head -c 40000000 >many
for what in pipe zero link folder; do
    printf '%s\n@include "%s"\n' "$head" $what >i.conf
    for command in 'run --dry-run' preview 'flow run --dry-run' 'run --local' try; do
        # shellcheck disable=SC2086
        refused_soon "dl $command, @include of a $what" "^?i.conf:2: @include: cannot read $what: .*" dl $command i.conf
    done
done
printf '%s\n@include "big"\n' "$head" >i.conf
refused_soon "a file that is too large" "(File too large|more than 64 MiB of text)" dl run --dry-run i.conf
printf '%s\n@include "many"\n@include "many"\n' "$head" >i.conf
refused_soon "two that are" "more than 64 MiB of text" dl run --dry-run i.conf

# ---- dl checks limits before the work
{
    printf 'name: x\nentrypoint: "true"\n'
    awk 'BEGIN { for (i = 0; i < 200000; i++) printf "key_%d: vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\n", i }'
} >keys.yaml
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%%TAG !a%d! tag:example.org,2026:x\n", i; print "---\nname: x" }' >tags.yaml
awk 'BEGIN { printf "name: x\nlist: {"; for (i = 0; i < 200000; i++) printf "k%d: 1, ", i; print "}" }' >flat.yaml
awk 'BEGIN { print "name = \"x\";"; for (i = 0; i < 200000; i++) printf "k%d = 1;\n", i }' >keys.conf
awk 'BEGIN { printf "name = \"x\";\nlist = ["; for (i = 0; i < 20000000; i++) printf "1,"; print "1];" }' >list.conf
refused_soon "200,000 keys of YAML" "keys.yaml:[0-9]*: more than 20000 settings" dl run --dry-run keys.yaml
refused_soon "in one line" "flat.yaml:[0-9]*: more than 20000 settings" dl run --dry-run flat.yaml
refused_soon "200,000 directives" "tags.yaml:[0-9]*: more than 100 lines begin with '%'" dl run --dry-run tags.yaml
refused_soon "200,000 keys of libconfig" "keys.conf:[0-9]*: more than 20000 settings" dl run --dry-run keys.conf
# shellcheck disable=SC3045
(ulimit -v 2000000 && exec timeout "$limit" dl run --dry-run list.conf) >out 2>&1
like "$? $(cat out)" "^2 list.conf:2: more than a million values in lists$" "20,000,000 values, in 2 GB"
rm -f many list.conf keys.yaml tags.yaml

# ---- a work tree in which git is configured to run programs
if git --version >/dev/null 2>&1; then
    unset DL_FREEZE
    mkdir tree runs
    cd tree || exit 1
    cat >../evil <<END
#!/bin/sh
echo "\$*" >>"$work/ran"
cat
END
    chmod 755 ../evil
    git init -q .
    echo one >data.txt
    echo "echo loss=1" >train.sh
    echo '*.txt filter=evil diff=evil' >.gitattributes
    git add . && git -c user.name=u -c user.email=u@example.org commit -qm first
    git init -q ../sub && echo 1 >../sub/x.txt && echo '*.txt filter=evil' >../sub/.gitattributes &&
        git -C ../sub add . && git -C ../sub -c user.name=u -c user.email=u@example.org commit -qm first
    git -c protocol.file.allow=always submodule --quiet add ../sub sub && git -c user.name=u -c user.email=u@example.org commit -qm second
    for folder in . sub; do
        for key in filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.textconv diff.evil.command core.fsmonitor core.sshCommand \
            filter.other.clean; do
            git -C $folder config $key "$work/evil $key"
        done
        git -C $folder config filter.evil.required true
        git -C $folder config --unset filter.evil.process
    done
    echo two >data.txt
    echo 2 >sub/x.txt
    cat >../g.conf <<END
name = "g"; entrypoint = "cd tree && sh train.sh"; metrics = { pattern = "loss={loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
hyperparameters = { lr = { type = "float"; minval = 0.0; maxval = 1.0; }; };
END
    cp ../g.conf g.conf
    sed -i 's|cd tree && ||' g.conf
    rm -f "$work/ran"
    timeout 300 dl run --local --dir ../runs g.conf >../out 2>&1
    is "$? $(cat "$work/ran" 2>/dev/null)" "0 " "dl run: no filter, hook or driver of the working tree runs"
    like "$(dl show --provenance --dir ../runs g)" '^\+two$' "the difference is recorded"
    git config 'filter.a=b.clean' "$work/evil odd"
    printf '*.txt filter=a=b\n' >.gitattributes
    echo three >data.txt
    timeout 300 dl run --local --dir ../runs g.conf >../out 2>&1
    is "$? $(cat "$work/ran" 2>/dev/null)" "0 " "nor one with a name that git does not accept"
    cd ..
else
    skip "git" "no git"
fi
done_testing
