#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# contrib/minicluster: folders in /tmp that another user has made, and access to a cluster that runs without root.
. "$srcdir/tests/lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all "a folder of another user needs root"

# ---- another user has made its folder in /tmp
mkdir elsewhere minicluster-0
chown 61002 minicluster-0
for made in "a folder" "a link"; do
    like "$(MINICLUSTER_DIR=. timeout 100 "$srcdir/contrib/minicluster" env 2>&1)" "belongs to another user, or is a link" "does not use $made"
    rmdir minicluster-0 2>/dev/null
    ln -sfn elsewhere minicluster-0
done
# a place must not be a name in /tmp, which anybody could claim
function_of () { sed -n "/^$1 ()/,/^}/p" "$srcdir/contrib/minicluster"; }
mkdir places
for name in one two; do
    mkdir $name
    bash -c "$(for f in die first_port port_is_free ports_are_free place_is_taken claim_place; do function_of $f; done)
        all=places dir=$name nodes=2; claim_place" >>out 2>&1
done
ok "$([ -s one/place ] && [ -d "places/.place-$(cat one/place)" ]; echo $?)" "a cluster's directory is claimed in the user's own folder"
ok "$([ -d "places/.place-$(cat two/place)" ] && [ "$(cat one/place)" != "$(cat two/place)" ]; echo $?)" "the next cluster has another"

# ---- without root, all jobs run as the cluster's user, so nobody else may submit one, or read the key
mkdir -p keys/munge
bash -c "$(function_of start_munged); head () { stat -c %a keys/munge/key >&2; }; munged () { :; }; dir=keys; start_munged" 2>out
is "$(cat out)" 600 "nobody else can ever read the key"
claim=$(bash -c "umask 0; $(grep '^umask ' "$srcdir/contrib/minicluster"); $(function_of claim_place)"'
    ports_are_free () { :; }; place_is_taken () { :; }; all=keys dir=keys; claim_place; echo "keys/.place-$(cat keys/place)"')
is "$(stat -c %a "$claim" "$claim/folder" | xargs)" "755 644" "nobody else can write to its directory, whatever the umask"
rm -rf "$claim"
mkdir -m 777 free
chmod 755 "$work"
is "$(setpriv --reuid=61002 --regid=61002 --clear-groups bash -c "$(function_of make_folder); check_owner () { :; }
    all=free/all dir=free/all/mini; make_folder; stat -c %a free/all")" 700 "nor enter the folder of an ordinary user"
done_testing
