# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Two ordinary users of one machine, for tests that play an attacker: source this after tests/lib.sh.  They have unused user
# IDs without an account, and belong to one group.  Neither may enter the other's home directory, $victim_home or
# $attacker_home.  Only root can run commands as these users.
victim_id=61001
attacker_id=61002
shared_group=61100
victim_home=$work/victim
attacker_home=$work/attacker

as_user () { # as_user ID HOME COMMAND...
    id=$1
    home=$2
    shift 2
    setpriv --reuid="$id" --regid="$id" --groups="$shared_group" --inh-caps=-all --bounding-set=-all --no-new-privs \
        env HOME="$home" TMPDIR="$home" XDG_RUNTIME_DIR= "$@"
}

victim () { # victim COMMAND...
    as_user "$victim_id" "$victim_home" "$@"
}

attacker () { # attacker COMMAND...
    as_user "$attacker_id" "$attacker_home" "$@"
}

[ "$(id -u)" -eq 0 ] || skip_all "to be two users needs root"
chmod 755 "$work"
mkdir "$victim_home" "$attacker_home"
chmod 700 "$victim_home" "$attacker_home"
chown "$victim_id:$victim_id" "$victim_home"
chown "$attacker_id:$attacker_id" "$attacker_home"
victim test -r "$builddir/config.h" 2>/dev/null || skip_all "other users may not read $builddir"
victim test -r "$srcdir/configure.ac" 2>/dev/null || skip_all "other users may not read $srcdir"

# Make a folder that both may write to, like a project folder of a group: shared_folder PATH
shared_folder () {
    mkdir -p "$1"
    chown "$victim_id:$shared_group" "$1"
    chmod 2775 "$1"
}
