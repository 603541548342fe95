#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each recipe of doc/cookbook.md, typed as printed.  Recipes that need Slurm are in tests/cluster/cookbook.t.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/doc/cookbook.sh"
readme=$srcdir/README.md
real=$(command -v dl)
unset DL_DIR DL_FREEZE
export HOME="$work"

# ---- the format of the cookbook
is "$(grep -c '^## ' "$book")" 23 "23 recipes"
is "$(awk '/^## / { title = $0; n = 0; next } /^$/ || /^```/ { next } title && ++n == 16 { print title }' "$book")" "" \
    "of at most 15 lines"
is "$(awk '/^## / && $2 != ++n "." { print }' "$book")" "" "they are numbered"
page=$builddir/doc/dl-cookbook.7
is "$(grep -c '^\.SH "[0-9]' "$page")" 23 "dl-cookbook(7) has them"
if command -v mandoc >/dev/null; then
    is "$(mandoc -Tlint -Wwarning "$page" 2>&1)" "" "and is a clean manual page"
else
    skip "a clean manual page" "no mandoc"
fi

# ---- the files of recipes, examples and the README cause no warnings
warned () { # warned FOLDER FILE: print the warnings about it
    (cd "$1" && timeout 100 "$real" preview "$2" 2>&1 >/dev/null) | grep '^dl: ' | sed "s|^|$1/$2: |"
}
files=0
for number in $(seq 23); do
    mkdir -p "$work/quiet/$number"
    cp "$srcdir/contrib/examples/cookbook/train.py" "$work/quiet/$number"
    (cd "$work/quiet/$number" && blocks "$number")
done
mkdir "$work/quiet/readme"
awk "/^    name = /, /^$/ { print substr (\$0, 5) }" "$readme" >"$work/quiet/readme/own.conf"
cp "$srcdir/contrib/examples/digits/digits.py" "$work/quiet/readme"
cp -r "$srcdir/contrib/examples" "$work/quiet/examples"
for file in "$work"/quiet/*/*.conf "$work"/quiet/*/*.yaml "$work"/quiet/examples/*/*.conf; do
    grep -qs '^ *searcher' "$file" || continue
    files=$((files + 1))
    warned "${file%/*}" "${file##*/}"
done >"$work/warned"
is "$(cat "$work/warned")" "" "no file has a warning"
holds "files: $files" [ $files -ge 24 ]

# ---- without Slurm: each search runs on this machine, with two workers
mkdir bin
cat >bin/dl <<END
#!/bin/sh
dl=$(command -v dl)
END
cat >>bin/dl <<'END'
command=$1
shift
case $command in
run | continue | retry | fork) exec "$dl" "$command" --local --workers=2 "$@" ;;
report) said=$("$dl" report "$@" 2>&1) && exit; echo "$said"; [ "${said#*D3}" != "$said" ] ;;
*) exec "$dl" "$command" "$@" ;;
esac
END
cat >bin/modulecmd <<'END'
#!/bin/sh
echo "LOADED=\$LOADED:$3; export LOADED"
END
cat >bin/apptainer <<'END'
#!/bin/sh
while [ "${1%.sif}" = "$1" ]; do shift; done
shift
exec "$@"
END
chmod +x bin/*
PATH=$work/bin:$PATH

for r in 1 2 3; do
    recipe $r
    follow
done

recipe 4
python3 -m venv --without-pip venv >venv.out 2>&1 || ln -s /usr venv
mkdir -p "$HOME/.conda/envs/torch/conda-meta" "$HOME/.conda/envs/torch/bin"
ln -s "$(command -v python3)" "$HOME/.conda/envs/torch/bin/python"
follow

recipe 5
echo 'import os; assert os.environ["LOADED"] == ":cuda/12.1:python/3.11"' | cat - train.py >new.py
mv new.py train.py
follow

recipe 6
cat >app.py <<'END'
import os, sys
given = dict(word.split("=") for word in sys.argv[1:])
assert given["model"] in ("small", "large") and os.path.isdir(given["hydra.run.dir"])
for epoch in range(int(given["trainer.max_epochs"])):
    print("loss =", float(given["optim.lr"]) ** 2)
END
follow

recipe 8
follow

recipe 9
printf 'def train(lr, batch):\n    assert (lr, batch) in ((0.1, 16), (0.01, 32))\n    return lr * batch\n' >mine.py
follow

recipe 10
follow

recipe 11
printf 'def objective(trial):\n    return trial.suggest_float("lr", 1e-5, 1e-1, log=True) * trial.suggest_int("layers", 1, 4)\n' >study.py
# Optuna takes most of a second to load, so only one trial uses the real one, and the others this stand-in.
cat >optuna.py <<'END'
import os, sys
class FixedTrial:
    def __init__(self, params):
        self.params = params
    def suggest_float(self, name, low, high, **_):
        return self.params[name]
    suggest_int = suggest_float
class trial:
    FixedTrial = FixedTrial
if os.environ["DL_TRIAL"] == "1":
    here, stand_in = sys.path.pop(0), sys.modules.pop("optuna")
    try:
        import optuna
        print("the real one:", optuna.__file__)
    except ImportError:
        sys.modules["optuna"] = stand_in
    sys.path.insert(0, here)
END
follow

recipe 12
follow
is "$(dl show --json seeds | python3 -c '
import json, sys
t = json.load(sys.stdin)["trials"]
print(len(t), len({x["point"] for x in t}), all(x["deviation"] > 0 for x in t))')" "9 3 True" "$title: three points with their deviations"

recipe 14
needs 1 lr.conf
follow
is "$(stat -c %a shared/lr-0001 | tail -c 3 | cut -c 1)" 7 "$title: the group can write"

recipe 17
needs 3 flags.conf
if python3 -c 'import pandas' 2>/dev/null; then
    follow
else
    skip "$title" "no pandas"
fi

for r in 18 19; do
    recipe $r
    follow
done

recipe 20
printf '#!/bin/sh\n[ "$1" = --lr ] && echo "$2"\n' >one-epoch
chmod +x one-epoch
follow

recipe 21
follow

recipe 22
: >pytorch.sif
follow
done_testing
