#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the plugin exports what Slurm looks for and needs libc only; the library exports slurmdl_*
. "$srcdir/tests/lib.sh"
rm -rf "$work"

if [ -f "$PLUGIN" ]; then
    is "$(nm -D --defined-only "$PLUGIN" | awk '{ print $3 }' |
        grep -vE '^(plugin_(name|type|version)|spank_plugin_version|slurm_spank_.*)$')" "" "the plugin's exports"
    case $(nm -D "$PLUGIN") in
    *__asan_*) skip "the plugin needs libc only" "a build with sanitizers" ;;
    *) is "$(readelf -d "$PLUGIN" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')" "libc.so.6 " "the plugin needs libc only" ;;
    esac
    like "$(readelf -d "$PLUGIN")" 'NODELETE' "it stays loaded"
    like "$(readelf -d "$PLUGIN")" 'BIND_NOW|NOW' "it is bound at once"
else
    skip "plugin" "it was not built"
fi
lib=$builddir/runtime/.libs/libslurmdl.so
is "$(nm -D --defined-only "$lib" | awk '{ print $3 }' | grep -v '^slurmdl_')" "" "the library's exports"
declared ()
{
    cat "$@" | grep -o 'slurmdl_[a-z_]* (' | tr -d ' (' | grep -v '_f$' | sort -u
}
exported=$(nm -D --defined-only "$lib" | awk '{ print $3 }' | sort)
is "$(printf '%s\n' "$exported" | grep -vxF "$(declared "$srcdir"/runtime/slurmdl*.h)")" "" \
    "nothing but what the headers declare"
is "$(declared "$srcdir/runtime/slurmdl.h" | grep -vxF "$exported")" "" "all that slurmdl.h declares"
cuda=$builddir/runtime/.libs/slurmdl-cuda.so
if [ -f "$cuda" ]; then
    is "$(nm -D --defined-only "$cuda" | awk '{ print $3 }')" slurmdl_memory_cuda "the CUDA back end's export"
else
    skip "the CUDA back end" "no CUDA here"
fi
done_testing
