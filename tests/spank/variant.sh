# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Variants of the plugin for a test, from the same sources: source this after lib.sh.
command -v slurmctld >/dev/null || PATH=$PATH:/usr/sbin
minicluster=$srcdir/contrib/minicluster

need_cluster () {
    [ -f "$PLUGIN" ] || skip_all "the plugin was not built"
    command -v slurmctld >/dev/null && command -v munged >/dev/null || skip_all "Slurm is not installed"
    case $(nm -D "$PLUGIN") in *__asan_*) skip_all "tested in the build without sanitizers" ;; esac
}

sources () {
    echo "$srcdir"/spank/*.c
    sed -n '/librankenv_la_SOURCES/,/[^\\]$/p' "$srcdir/runtime/local.mk" | grep -o '%D%/[a-z_/]*\.c' | sed "s|%D%|$srcdir/runtime|"
}

# shellcheck disable=SC2046
variant () { # variant OUT FLAG...; of $parts, else of all sources
    out=$1
    shift
    ${CC:-cc} -shared -fPIC -g -O1 -std=gnu11 -D_GNU_SOURCE -I"$srcdir" -DSYSCONFDIR='"/nonexistent"' -DBINDIR='"/nonexistent"' -DDEBUGDIR='"/nonexistent"' \
        -Wl,-z,nodelete "$@" -o "$out" ${parts:-$(sources)}
}

other_plugin () { # other_plugin OUT SOURCE FLAG...
    out=$1
    src=$2
    shift 2
    ${CC:-cc} -shared -fPIC -g -O1 -std=gnu11 -D_GNU_SOURCE -I"$srcdir" "$@" -o "$out" "$src"
}

cluster_up () { # cluster_up NAME OPTION...
    cluster=$1
    shift
    timeout 300 "$minicluster" up --name="$cluster" "$@" >"$work/up" 2>&1 ||
        { sed 's/^/# /' "$work/up"; echo "Bail out! no cluster"; exit 1; }
    eval "$("$minicluster" env "$cluster")"
    plugstack=${SLURM_CONF%/*}/plugstack.conf
}
