#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# dl flow in a folder that a group shares: another member plants flows, results and caches.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
unset DL_DIR DL_FREEZE
shared_folder "$work/group"
mkdir "$work/code"
chmod 755 "$work/code"
cat >"$work/code/one.conf" <<'END'
name = "one";
steps = { a = { entrypoint = "id -u >{out.who}; touch $HOME/ran"; outputs = { who = "who"; }; }; b = { entrypoint = "cat {a.who}"; }; };
END

# ---- another user's flow can be inspected, but not run
is "$(attacker timeout 300 dl flow run --local --dir="$work/group" "$work/code/one.conf" >/dev/null 2>&1; echo $?)" 0 "the attacker's flow"
like "$(victim dl flow show --dir="$work/group" one)" 'one-0001: completed' "dl can show it"
for word in resume stop; do
    like "$(victim dl flow $word --dir="$work/group" one 2>&1; echo "=$?")" "this flow belongs to another user: run its file" "dl flow $word refuses it"
done
pin=$(sha256sum "$work/group/one-0001/flow.json" | cut -d' ' -f1)
like "$(victim dl flow step --dir="$work/group" one-0001 "$pin" a 1 0 2>&1)" "belongs to another user" "nor does it run as a job"
victim test -e "$victim_home/ran"
is "$?" 1 "nothing of it ran"

# ---- a cache made by the attacker, with entries for all steps
attacker sh -c "cd '$work/group' && cp -r .dl-flow-cache-$attacker_id .dl-flow-cache-$victim_id && chmod 777 .dl-flow-cache-$victim_id"
like "$(victim timeout 300 dl flow run --local --dir="$work/group" "$work/code/one.conf" 2>&1)" 'one-0002: completed, 2 tasks run' "another user's results are not taken"
is "$(cat "$work"/group/one-0002/steps/b/0/a.1/log)" $victim_id "the victim's own are"
attacker sh -c "cd '$work/group/.dl-flow-cache-$victim_id' && set -- \$(find . -type f -user $victim_id | sed 's/[.][0-9]*\$//') && for n in 1 2; do
    mv \$1.\$n x.\$n; mv \$2.\$n \$1.\$n; mv x.\$n \$2.\$n; done"
like "$(victim timeout 300 dl flow run --local --dir="$work/group" "$work/code/one.conf" 2>&1)" 'one-0003: completed, 2 tasks run' "nor one under another name"

# ---- another file under the name of a result, with the same size and time
file=$work/group/one-0003/steps/a/0/a.1/who
attacker sh -c "mv '$work/group/one-0003' '$work/group/aside' && mkdir -p '${file%/*}' && echo 66666 >'$file' &&
    touch -r '$work/group/aside/steps/a/0/a.1/who' '$file'"
is "$?" 0 "the attacker has put a file there"
like "$(victim timeout 300 dl flow run --local --dir="$work/group" "$work/code/one.conf" 2>&1)" 'one-0004: completed' "the flow runs again"
is "$(grep -l one-0003/steps/a "$work"/group/one-0004/log/*/*)" "" "and does not use that file"
attacker sh -c "rm -r '$work/group/one-0003' && mv '$work/group/aside' '$work/group/one-0003'"

# ---- folders that are not runs: a missing file, a pipe
attacker sh -c "cd '$work/group' && mkdir evil-0001 evil-0002 evil-0003 && mkfifo evil-0002/flow.conf evil-0003/flow.json &&
    echo '{\"dir\": \"/\", \"sha256\": \"00\"}' | tee evil-0001/flow.json >evil-0002/flow.json"
victim timeout 30 dl flow ls --dir="$work/group" >"$work/out" 2>&1
is "$? $(grep -c '^one-000' "$work/out") $(grep -cE '^dl: .*evil-000.*(cannot read|written by another version)' "$work/out")" "0 4 3" "each prints one line at once"
attacker rm -r "$work/group/evil-0001" "$work/group/evil-0002" "$work/group/evil-0003"

# ---- a link to another flow of the victim's
victim sh -c "umask 022; cp -r '$work/group/one-0002' '$victim_home/two-0001'"
attacker ln -s "$victim_home/two-0001" "$work/group/two-0001"
for name in two two-0001; do
    is "$(victim dl flow resume --local --dir="$work/group" $name 2>&1)" "dl: no flow '$name' (dl flow ls lists them)" "another user's link is no flow: $name"
done
attacker rm "$work/group/two-0001"

# ---- nobody else can write into the victim's flow
attacker sh -c "touch '$work/group/one-0002/log/000000/00000099' '$work/group/one-0002/steps/b/0/x'" 2>/dev/null
is "$?" 1 "the attacker cannot write into a flow"
done_testing
