#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# checkpoints of others: nothing in them runs as who restores them, unless he says that he trusts them
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy
. "$srcdir/tests/attacks/users.sh"
preload_sanitizers
cd "$work" || exit 1
group=$work/group
shared_folder "$group"
cd "$group" || exit 1
all="estimator"
if $python -c 'import torch' 2>/dev/null; then
    all="estimator model random_states file tensor lightning"
else
    skip "PyTorch" "no python3-torch"
fi

do_it () { # do_it USER save|load WHAT [HOW]: what it says; "$work/ran" is there if code ran
    user=$1
    shift
    rm -f "$ran"
    # shellcheck disable=SC2016
    RAN=$ran $user sh -c 'umask 2; exec timeout 300 "$@"' sh "$python" "$srcdir/tests/attacks/trust.py" "$1" "$2" "$group/$2" $3 2>&1
}
ran=$victim_home/ran
loaded () { # loaded USER WHAT [HOW]: its word, and whether code ran
    said=$(do_it "$1" load "$2" "$3")
    [ -e "$ran" ] && echo "ran: $said" || echo "$said"
}

for what in $all; do
    attacker sh -c "umask 2; mkdir '$group/$what'"
    RAN=$attacker_home/ran do_it attacker save $what >/dev/null
    got=$(loaded victim $what)
    like "$got" "^refused: $group/$what/.*\.h5: has .* belongs to user $attacker_id.*trust=True" "$what: another user's is refused, by file, owner and what to do"
    case $what in estimator) ;; *)
        like "$(loaded victim $what weights_only)" "^refused: .*weights_only" "$what: and with weights_only" ;;
    esac
    like "$(loaded victim $what trust)" "^ran: " "$what: trust=True reads it"
done

# ---- one's own need no word, in a folder of the group's too

for what in $all; do
    rm -rf "${group:?}/$what"
    victim sh -c "umask 2; mkdir '$group/$what'"
    do_it victim save $what >/dev/null
    like "$(loaded victim $what)" "^ran: " "$what: one's own is read without a word"
    find "$group/$what" -name '*.h5' -exec chmod g+w {} +
    like "$(loaded victim $what)" "^refused: .*others may write" "$what: not when others may have written to it"
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
attacker env RAN="$ran" "$python" "$srcdir/tests/attacks/trust.py" save estimator "$attacker_home/bad" >"$work/out" 2>&1
attacker sh -c "cp '$attacker_home'/bad/*/ckpt/*.h5 '$group/f-0001/trials/0001/a.1/ckpt'"
like "$(fork)" "^[1-9].*others have written it.*--trust.* 0$" "dl fork refuses another's checkpoint"
like "$(fork --trust)" "^0 .* 1$" "but with --trust"

# ---- what needs no pickle is read from everybody

case $all in *model*)
    attacker sh -c "umask 2; mkdir '$group/harmless'"
    do_it attacker save harmless >/dev/null
    is "$(loaded victim harmless)" "load done" "without pickles: another user's is read"
    is "$(loaded victim harmless weights_only)" "load done" "and with weights_only"
    ;;
esac

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
    victim env RAN="$victim_home/fine" "$python" "$srcdir/tests/attacks/trust.py" save file "$group/file" >/dev/null
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
