#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# The two users of these tests are ordinary users, separated from each other, and share a group.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"

is "$(victim id -u)/$(attacker id -u)" "$victim_id/$attacker_id" "two users"
is "$(victim sh -c 'grep ^CapEff /proc/self/status | tr -d "\t"')" CapEff:0000000000000000 "without capabilities"
victim sh -c 'echo private >"$HOME/file"'
is "$(attacker cat "$victim_home/file" 2>/dev/null)" "" "neither can read the other's home"
attacker kill -0 $$ 2>/dev/null
is $? 1 "nor signal the other's processes"
shared_folder "$work/group"
attacker sh -c "umask 2; echo from a colleague >'$work/group/file'"
is "$(victim sh -c "echo and back >>'$work/group/file'; cat '$work/group/file'")" "from a colleague
and back" "both can write in the group's folder"
done_testing
