#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# contrib/gpu-bundle: make a bundle from the build directory, and run all of its cases with fakes
. "$srcdir/tests/lib.sh"
case $CFLAGS in *sanitize*) skip_all "interpreters would want the sanitizers first" ;; esac
[ -f "$builddir/runtime/.libs/slurmdl-nccl.so" ] || skip_all "configure found no CUDA or no NCCL"
[ -f "$builddir/contrib/python/.libs/_slurmdl.so" ] || skip_all "no Python headers (python3-dev)"
bundle=$srcdir/contrib/gpu-bundle

# ---- errors
mkdir "$work/mine"
touch "$work/mine/thesis"
out=$(cd "$work" && "$bundle" bundle 2>&1)
is "$? $out" "1 gpu-bundle: not in a build folder of slurm-dl: run 'make all check-programs' in one first" "outside a build folder"
cd "$builddir" || exit 1
out=$("$bundle" "$work/mine" 2>&1)
is "$? $out" "1 gpu-bundle: $work/mine: already exists and is not a bundle" "a folder with other files"
[ -f "$work/mine/thesis" ]
ok $? "which is left unchanged"
"$bundle" >"$work/out" 2>&1
is $? 2 "no folder"

# ---- make a bundle and move it
"$bundle" "$work/made" >"$work/out" 2>&1
is $? 0 "a bundle is made"
sed 's/^/# /' "$work/out"
like "$(cat "$work/out")" "made: [1-5]?[0-9] MiB; test it with: " "it prints its size"
mv "$work/made" "$work/moved"
like "$("$work/moved/run" --list)" ' whole$' "it lists its cases"
out=$("$work/moved/run" --only=nothing 2>&1)
is "$? $out" "1 run: --only=nothing: there is no such case; --list lists them" "an unknown case"

# ---- run all cases, with the Python that configure found, because it may have PyTorch
mkdir scratch
"$work/moved/run" --stand-ins --scratch=scratch --python="$(sed -n 's/^PYTHON = //p' "$builddir/Makefile")" --out=results --limit=3000 >out 2>err
is $? 0 "its cases succeed with stand-ins"
sed 's/^/# /' out err
like "$(tail -n 1 out)" 'results/results.json$' "it prints where the results are"
/usr/bin/python3 - <<'END'
import json
whole = json.load(open("results/results.json"))
assert whole["stand_ins"] and whole["machine"]["cores"] and not any(c["failed"] for c in whole["cases"])
assert all(f["value"] is not None and f["unit"] for f in whole["figures"])
END
is $? 0 "results.json is complete"
is "$(ls scratch)" "" "nothing is left behind"
done_testing
