#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# two users of a group share an experiment
. "$srcdir/tests/lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to be two users"
command -v setpriv >/dev/null || skip_all "no setpriv"
chmod 755 .
alice=54321 bob=54322 group=54323
as () { # as UID COMMAND...: run it as this user, with the group as a supplementary group
    uid=$1
    shift
    HOME=$work timeout 300 setpriv --reuid "$uid" --regid "$uid" --groups "$group" sh -c 'umask 022; exec "$@"' sh "$@"
}
dl=$(command -v dl)
as $alice "$dl" --version >/dev/null 2>&1 || skip_all "other users cannot reach the program"
mkdir shared own
chgrp $group shared
chmod 775 shared
chown $alice own
cat >s.conf <<'END'
name = "s"; entrypoint = "while [ ! -f go ]; do sleep 0.1; done; dl log loss=1";
searcher = { name = "random"; metric = "loss"; max_trials = 3; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
worker = { heartbeat = 1; lease = 4; grace = 3; };
resources = { workers = 1; };
END
as $alice "$dl" run --local --dir shared s.conf >out 2>&1 &
pid=$!
holds "one user runs it" wait_for 300 sh -c 'ls shared/s-0001/trials/*/a.1/log'
like "$(as $bob "$dl" pause --dir shared s 2>&1)" 'paused' "another member of the group pauses it"
wait $pid
is $? 4 "which ends the first one's workers"
like "$(as $bob "$dl" show --dir shared s)" "^last: paused by $bob, " "show: who did it"
touch go
runs 0 "the other one continues it" as $bob "$dl" resume --local --trust --dir shared s
is "$(cat shared/s-0001/log/0*/0* | grep -c '"op":"result"')" 3 "to the end"
like "$(as $alice "$dl" label --dir shared s good 2>&1)" 'label good' "the first one labels it"
is "$(find shared/s-0001 ! -type l ! -group $group | head -3)" "" "all of it belongs to the group"
is "$(find shared/s-0001 -type d ! -perm -2070 | head -3)" "" "its folders pass the group on"
is "$(find shared/s-0001 -type f ! -perm -040 | head -3)" "" "its files can be read by the group"
is "$(find shared/s-0001 -type f -perm /022 | head -3)" "" "and each written only by its owner"
like "$(as 54324 "$dl" pause --dir shared s 2>&1)" 'nothing to pause' "others can look at it"
runs 0 "members of the group can write" as 60000 "$dl" label --dir shared s mine
runs 0 "an existing label changes nothing" env "HOME=$work" setpriv --reuid 60001 --regid 60001 --clear-groups "$dl" label --dir shared s mine
runs 7 "others cannot" env "HOME=$work" setpriv --reuid 60001 --regid 60001 --clear-groups "$dl" label --dir shared s theirs
like "$(cat out)" 'Permission denied' "and is reported"
runs 0 "a member of the group removes it" as $bob "$dl" rm --dir shared s-0001
holds "all of it" [ ! -e shared/s-0001 ]
as $alice "$dl" run --local --dir own s.conf >out 2>&1
is "$(find own/s-0001 ! -type l -perm /020 | head -3)" "" "in a private folder nothing belongs to the group"
done_testing
