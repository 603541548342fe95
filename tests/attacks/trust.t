#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Restoring another user's checkpoint runs none of its code, unless the user passes trust=True or --trust.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy
. "$srcdir/tests/attacks/users.sh"
preload_sanitizers
group=$work/group
shared_folder "$group"
cd "$group" || exit 1
all="estimator"
if $python -c 'import torch' 2>/dev/null; then
    all="estimator model random_states file tensor lightning"
else
    skip "PyTorch" "no python3-torch"
fi

ran=$victim_home/ran
do_it () { # do_it USER save|load plain|trust|weights_only KIND...: the lines of all kinds are in "$work/said"
    user=$1 action=$2 how=$3
    shift 3
    rm -f "$ran".*
    RAN=$ran $user sh -c 'umask 2; exec timeout 600 "$@"' sh \
        "$python" "$srcdir/tests/attacks/trust.py" "$action" "$group" "$how" "$@" >"$work/said" 2>&1
}
said () { # said KIND: print the outcome
    sed -n "s/^$1 //p" "$work/said"
}
folders () { # folders USER: make a folder for each kind
    for kind in $all harmless; do $1 sh -c "umask 2; mkdir '$group/$kind'"; done
}

folders attacker
do_it attacker save plain $all
do_it victim load plain $all
for kind in $all; do
    like "$(said $kind)" "^ ?refused: $group/$kind/.*\.h5: contains .* belongs to user $attacker_id.*trust=True" \
        "$kind: another user's is refused, with file, owner and remedy"
done
do_it victim load weights_only $all
for kind in $all; do
    [ $kind = estimator ] || like "$(said $kind)" "^ ?refused: .*weights_only" "$kind: also with weights_only"
done
do_it victim load trust $all
for kind in $all; do
    like "$(said $kind)" "^ran: " "$kind: trust=True loads it"
done

# ---- checkpoints without pickles can be read whoever wrote them

case $all in *model*)
    do_it attacker save plain harmless
    do_it victim load plain harmless
    is "$(said harmless)" " load done" "without pickles another user's is loaded"
    do_it victim load weights_only harmless
    is "$(said harmless)" " load done" "also with weights_only"
    ;;
esac

# ---- the user's own checkpoints need no trust=True, even in the group's folder

for kind in $all harmless; do rm -rf "${group:?}/$kind"; done
folders victim
do_it victim save plain $all
do_it victim load plain $all
for kind in $all; do
    like "$(said $kind)" "^ran: " "$kind: the user's own is loaded silently"
done
find "$group" -name '*.h5' -exec chmod g+w {} +
do_it victim load plain $all
for kind in $all; do
    like "$(said $kind)" "^ ?refused: .*others may write" "$kind: not if others may have written to it"
done

# ---- a copy that dl fork makes of another user's checkpoint does not count as the user's own

cat >"$work/f.conf" <<'END'
name = "f"; entrypoint = "dl log loss=1"; searcher = { name = "random"; metric = "loss"; max_trials = 1; max_length = 2; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
END
fork () { # fork OPTION...: fork the victim's experiment; print the status, the output, and how many checkpoints were copied
    victim timeout 300 dl fork --local --dir "$group" --file "$work/f.conf" "$@" f-0001 1 >"$work/out" 2>&1
    echo "$? $(tr '\n' ' ' <"$work/out") $(find "$group" -path '*-fork*/source/*.h5' | wc -l)"
}
victim sh -c "umask 2; exec timeout 300 dl run --local --dir '$group' '$work/f.conf'" >"$work/out" 2>&1 || sed 's/^/# /' "$work/out"
victim sh -c "umask 2; mkdir -p '$group/f-0001/trials/0001/a.1/ckpt'"
attacker sh -c "mkdir -p '$attacker_home/bad/estimator'"
attacker env RAN="$ran" "$python" "$srcdir/tests/attacks/trust.py" save "$attacker_home/bad" plain estimator >"$work/out" 2>&1
attacker sh -c "cp '$attacker_home'/bad/estimator/*/ckpt/*.h5 '$group/f-0001/trials/0001/a.1/ckpt'"
like "$(fork)" "^[1-9].*others wrote it.*--trust.* 0$" "dl fork refuses another's checkpoint"
like "$(fork --trust)" "^0 .* 1$" "--trust copies it"
for mode in 664 646 644; do
    victim sh -c "cd '$group/f-0001/trials/0001/a.1/ckpt' && for f in *.h5; do cp \$f .own && chmod $mode .own && mv -f .own \$f; done"
    case $mode in
    644) like "$(fork)" "^0 .* 2$" "mode $mode: it copies the user's own" ;;
    *) like "$(fork)" "^[1-9].*or can write to it.*--trust.* 1$" "mode $mode: it refuses the user's own that others can write to" ;;
    esac
done

# ---- nor does a copy made by export, register or import, or a copy of such a copy

bad=$(echo "$attacker_home"/bad/estimator/*/ckpt/*.h5)
step=$(basename "$bad")
attacker sh -c "sed 's/\"f\"/\"m\"/; s/max_length = 2/max_length = 1/' '$work/f.conf' >'$attacker_home/m.conf'; umask 2; cd '$group' &&
    timeout 300 dl run --local --dir '$group' '$attacker_home/m.conf' && mkdir -p m-0001/trials/0001/a.1/ckpt && cp '$bad' m-0001/trials/0001/a.1/ckpt &&
    dl model register --models=models m-0001 1 theirs" >"$work/out" 2>&1 || sed 's/^/# /' "$work/out"
rm -rf "$victim_home/copies"
victim mkdir "$victim_home/copies"
restored () { # restored FILE [HOW]: restore it in a run of the victim's, and print the outcome
    rm -rf "$victim_home/t" "$ran".*
    victim sh -c "mkdir -p '$victim_home/t/estimator/a.1/ckpt' && cp '$1' '$victim_home/t/estimator/a.1/ckpt/$step'"
    RAN=$ran victim timeout 300 "$python" "$srcdir/tests/attacks/trust.py" load "$victim_home/t" "${2:-plain}" estimator 2>&1
}
in_copies () { # in_copies COMMAND...: run it as the victim in that folder; print its status and output
    (cd "$victim_home/copies" && victim sh -c 'umask 22; exec "$@"' sh timeout 300 "$@") >"$work/out" 2>&1 </dev/null
    echo "$? $(tr '\n' ' ' <"$work/out")"
}
mine="of user $attacker_id, and slurmdl unpickles nothing of it without trust=True"
like "$(in_copies dl model export --models="$group/models" theirs exported)" "^0 dl: .*model.h5 has data $mine.*all digests match" \
    "dl model export of another user's: one line says whose data it has"
is "$(in_copies sh -c 'cd exported && sha256sum -c SHA256SUMS | grep -vc OK$')" "1 0 " "the sums are those of the copy"
like "$(in_copies dl best --dir "$group" --export=best m-0001)" "^0 dl: .* has data $mine" "dl best --export as well"
is "$(in_copies sh -c 'sha256sum <best/checkpoint.h5 | cut -c 1-64 | xargs -I{} grep -c {} best/manifest.json')" "0 1 " "its manifest has the digest of the copy"
like "$(in_copies sh -c "dl model register --models=own --dir '$group' m-0001 1 mine && dl model export --models=own mine registered")" \
    "^0 .*has data $mine" "dl model register, and export from the user's own registry"
like "$(in_copies dl ckpt export "$group/m-0001/trials/0001" one.safetensors)" "^0 " "dl ckpt export"
like "$(in_copies dl ckpt import one.safetensors imported.h5)" "^0 dl: imported.h5 has data $mine" "and import of its output"
attacker sh -c "dl ckpt export '$bad' '$group/his.safetensors'" >"$work/out" 2>&1
like "$(in_copies dl ckpt import "$group/his.safetensors" his.h5)" "^0 dl: his.h5 has data $mine" "dl ckpt import of another user's file"
in_copies sh -c 'dl ckpt export exported/model.h5 two.safetensors && dl ckpt import two.safetensors chain.h5' >/dev/null
in_copies sh -c 'cp exported/model.h5 by-hand.h5' >/dev/null
for copy in exported/model.h5 best/checkpoint.h5 registered/model.h5 imported.h5 his.h5 chain.h5 by-hand.h5; do
    like "$(restored "$victim_home/copies/$copy")" "^estimator  ?refused: .* belongs to user $attacker_id.*trust=True" "$copy: its pickle is refused"
    is "$(in_copies dl ckpt verify $copy | cut -c 1)" 0 "$copy: it verifies"
done
like "$(restored "$victim_home/copies/exported/model.h5" trust)" "^estimator ran: " "trust=True reads it"
# a copy that is passed on
victim sh -c "umask 22; mkdir '$group/passed' && cp '$victim_home/copies/exported/model.h5' '$group/passed/'"
like "$(in_copies dl ckpt export "$group/passed/model.h5" three.safetensors; grep -ao 'slurmdl_owner":"[0-9]*' "$victim_home/copies/three.safetensors")" \
    "slurmdl_owner\":\"$attacker_id" "a copy of a copy of a copy says who the owner was"
# --trust
rm -rf "$victim_home/copies/exported" "$victim_home/copies/best"
is "$(in_copies dl model export --trust --models="$group/models" theirs exported)" "0 theirs/1: exported, all digests match " "--trust prints no line"
like "$(restored "$victim_home/copies/exported/model.h5")" "^estimator ran: " "and makes it the user's own"
in_copies dl best --trust --dir "$group" --export=best m-0001 >/dev/null
like "$(restored "$victim_home/copies/best/checkpoint.h5")" "^estimator ran: " "dl best --trust"
in_copies dl ckpt import --trust two.safetensors trusted.h5 >/dev/null
like "$(restored "$victim_home/copies/trusted.h5")" "^estimator ran: " "dl ckpt import --trust"
# a damaged mark of ownership counts as another user's
for end in 0000000abc -000000001 4294967296; do
    victim sh -c "cd '$victim_home/copies' && head -c -11 by-hand.h5 >spoilt.h5 && echo '$end' >>spoilt.h5"
    like "$(restored "$victim_home/copies/spoilt.h5")" "^estimator  ?refused: " "an invalid mark: $end"
done
# the user's own checkpoint has no mark
rm -rf "$victim_home/own"
victim mkdir -p "$victim_home/own/estimator"
RAN=$ran victim "$python" "$srcdir/tests/attacks/trust.py" save "$victim_home/own" plain estimator >/dev/null 2>&1
own=$(echo "$victim_home"/own/estimator/*/ckpt/*.h5)
is "$(in_copies sh -c "dl ckpt export '$own' own.safetensors && dl ckpt import own.safetensors own.h5")" "0 " "the user's own needs no option"
like "$(restored "$victim_home/copies/own.h5")" "^estimator ran: " "and remains the user's own"
# fork an experiment with an imported checkpoint
victim sh -c "rm -f '$group/f-0001/trials/0001/a.1/ckpt/'*; cp '$victim_home/copies/by-hand.h5' '$group/f-0001/trials/0001/a.1/ckpt/$step'"
before=$(fork | sed 's/.* //')
like "$(fork)" "^[1-9].*others wrote it.*--trust.* $before$" "dl fork refuses a copy of another's"

# ---- dl checks the owner of the file that it has opened, not of the path

cat >"$work/swap.py" <<'END'
import os, sys, threading
import slurmdl, slurmdl.torch as st
mine, his, path = sys.argv[1:]
tried = refused = 0
while tried < 200:
    for source in (his, mine):
        tried += 1
        os.symlink(source, path + "~")
        os.replace(path + "~", path)
        if source == his:
            over = threading.Event()
            def back():
                os.symlink(mine, path + "~")
                os.replace(path + "~", path)
                over.set()
            t = threading.Thread(target=back)
            t.start()
            try:
                st.load(path)
            except slurmdl.Error:
                refused += 1
            except Exception:
                pass
            t.join()
print("some refused" if refused else "none refused")
END
case $all in *model*)
    rm -rf "$group/file"
    victim sh -c "umask 22; mkdir '$group/file'"
    attacker sh -c "umask 2; mkdir '$group/swap'"
    victim env RAN="$victim_home/fine" "$python" "$srcdir/tests/attacks/trust.py" save "$group" plain file >/dev/null
    attacker env RAN="$ran" "$python" -c '
import os, sys, slurmdl.torch as st
class Code:
    def __reduce__(self):
        return (os.system, ("touch " + os.environ["RAN"],))
st.save({"x": Code()}, sys.argv[1], 1)' "$group/swap/his.h5"
    rm -f "$ran"
    is "$(victim timeout 500 "$python" "$work/swap.py" "$group/file/file.h5" "$group/swap/his.h5" "$victim_home/link.h5" 2>&1)" "some refused" \
        "a path that changes while it is read"
    ok "$(test ! -e "$ran"; echo $?)" "never runs another user's code"
    ;;
esac
done_testing
