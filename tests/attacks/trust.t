#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# checkpoints of others: nothing in them runs as who restores them, unless he says that he trusts them
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
do_it () { # do_it USER save|load plain|trust|weights_only KIND...: a line of each kind is in "$work/said"
    user=$1 action=$2 how=$3
    shift 3
    rm -f "$ran".*
    RAN=$ran $user sh -c 'umask 2; exec timeout 600 "$@"' sh \
        "$python" "$srcdir/tests/attacks/trust.py" "$action" "$group" "$how" "$@" >"$work/said" 2>&1
}
said () { # said KIND: what became of it
    sed -n "s/^$1 //p" "$work/said"
}
folders () { # folders USER
    for kind in $all harmless; do $1 sh -c "umask 2; mkdir '$group/$kind'"; done
}

folders attacker
do_it attacker save plain $all
do_it victim load plain $all
for kind in $all; do
    like "$(said $kind)" "^ ?refused: $group/$kind/.*\.h5: has .* belongs to user $attacker_id.*trust=True" \
        "$kind: another user's is refused, by file, owner and what to do"
done
do_it victim load weights_only $all
for kind in $all; do
    [ $kind = estimator ] || like "$(said $kind)" "^ ?refused: .*weights_only" "$kind: and with weights_only"
done
do_it victim load trust $all
for kind in $all; do
    like "$(said $kind)" "^ran: " "$kind: trust=True reads it"
done

# ---- what needs no pickle is read from everybody

case $all in *model*)
    do_it attacker save plain harmless
    do_it victim load plain harmless
    is "$(said harmless)" " load done" "without pickles: another user's is read"
    do_it victim load weights_only harmless
    is "$(said harmless)" " load done" "and with weights_only"
    ;;
esac

# ---- one's own need no word, in a folder of the group's too

for kind in $all harmless; do rm -rf "${group:?}/$kind"; done
folders victim
do_it victim save plain $all
do_it victim load plain $all
for kind in $all; do
    like "$(said $kind)" "^ran: " "$kind: one's own is read without a word"
done
find "$group" -name '*.h5' -exec chmod g+w {} +
do_it victim load plain $all
for kind in $all; do
    like "$(said $kind)" "^ ?refused: .*others may write" "$kind: not when others may have written to it"
done

# ---- nor does a copy that dl makes of another's for a fork count as one's own

cat >"$work/f.conf" <<'END'
name = "f"; entrypoint = "dl log loss=1"; searcher = { name = "random"; metric = "loss"; max_trials = 1; max_length = 2; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
END
fork () { # fork OPTION...: of the victim's own experiment, in which the attacker has put a checkpoint
    victim timeout 300 dl fork --local --dir "$group" --file "$work/f.conf" "$@" f-0001 1 >"$work/out" 2>&1
    echo "$? $(tr '\n' ' ' <"$work/out") $(find "$group" -path '*-fork*/source/*.h5' | wc -l)"
}
victim sh -c "umask 2; exec timeout 300 dl run --local --dir '$group' '$work/f.conf'" >"$work/out" 2>&1 || sed 's/^/# /' "$work/out"
victim sh -c "umask 2; mkdir -p '$group/f-0001/trials/0001/a.1/ckpt'"
attacker sh -c "mkdir -p '$attacker_home/bad/estimator'"
attacker env RAN="$ran" "$python" "$srcdir/tests/attacks/trust.py" save "$attacker_home/bad" plain estimator >"$work/out" 2>&1
attacker sh -c "cp '$attacker_home'/bad/estimator/*/ckpt/*.h5 '$group/f-0001/trials/0001/a.1/ckpt'"
like "$(fork)" "^[1-9].*others have written it.*--trust.* 0$" "dl fork refuses another's checkpoint"
like "$(fork --trust)" "^0 .* 1$" "but with --trust"
for mode in 664 646 644; do
    victim sh -c "cd '$group/f-0001/trials/0001/a.1/ckpt' && for f in *.h5; do cp \$f .own && chmod $mode .own && mv -f .own \$f; done"
    [ $mode = 644 ] && wanted="^0 .* 2$" || wanted="^[1-9].*or may write to it.*--trust.* 1$"
    like "$(fork)" "$wanted" "nor one's own of mode 664 or 646 without it: $mode"
done

# ---- the owner is that of the file which is read, not of what lies at the path

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
    ok "$(test ! -e "$ran"; echo $?)" "never lets another user's run"
    ;;
esac
done_testing
