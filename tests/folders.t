#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the folders of the library include each other one way only (runtime/local.mk)
. "$srcdir/tests/lib.sh"
cd "$srcdir" || exit 1

includes () { # includes FILE...: the folders of what these include, once each
    sed -n 's|^ *# *include "\(.*\)/[^/]*"$|\1|p' "$@" | sed 's|^\(runtime/[a-z]*\)/.*|\1|' | sort -u
}

# only FOLDER ALLOWED...: beside itself and libc a folder includes no others
only () {
    folder=$1
    shift
    find "$folder" -name '*.[ch]' >"$work/files"
    [ -s "$work/files" ] || { echo "Bail out! no $folder"; exit 1; }
    # shellcheck disable=SC2046
    includes $(cat "$work/files") | grep -vxF "$folder" >"$work/others"
    printf '%s\n' "$@" >"$work/allowed"
    is "$(grep -vxF -f "$work/allowed" "$work/others")" "" "$folder includes of others: ${*:-none}"
}

only searcher
only runtime/host runtime
only runtime/rank runtime runtime/host
only runtime/network runtime runtime/rank
only runtime/run runtime
only runtime/metrics runtime runtime/run
only runtime/checkpoint runtime runtime/run
only runtime/comm runtime runtime/rank runtime/run
only spank runtime runtime/rank runtime/network

# what lies beside the folders knows none of them, but for context.c, which puts a run together
# shellcheck disable=SC2046
is "$(includes $(find runtime -maxdepth 1 -name '*.[ch]' ! -name context.c))" runtime "runtime's own files include none of its folders"
done_testing
