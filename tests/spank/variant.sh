# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Build variants of the plugin from its sources for a test: source this after lib.sh.
sources () {
    echo "$srcdir"/spank/*.c
    sed -n '/librank_la_SOURCES/,/[^\\]$/p' "$srcdir/runtime/local.mk" | grep -o '%D%/[a-z_/]*\.c' | sed "s|%D%|$srcdir/runtime|"
}

# shellcheck disable=SC2046
variant () { # variant OUT FLAG...: build it from $parts, or from all sources if that is empty
    out=$1
    shift
    ${CC:-cc} -shared -fPIC -g -O1 -std=gnu11 -D_GNU_SOURCE -I"$srcdir" ${SLURM_PREFIX:+-isystem "$SLURM_PREFIX/include"} -DSYSCONFDIR='"/nonexistent"' -DBINDIR='"/nonexistent"' -DDEBUGDIR='"/nonexistent"' -DPLUGSTACKDIR='"/nonexistent"' \
        -Wl,-z,nodelete "$@" -o "$out" ${parts:-$(sources)}
}

other_plugin () { # other_plugin OUT SOURCE FLAG...
    out=$1
    src=$2
    shift 2
    ${CC:-cc} -shared -fPIC -g -O1 -std=gnu11 -D_GNU_SOURCE -I"$srcdir" "$@" ${SLURM_PREFIX:+-isystem "$SLURM_PREFIX/include"} -o "$out" "$src"
}
