#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the plugin exports only what Slurm looks up and needs only libc; each library exports exactly what its header declares
. "$srcdir/tests/lib.sh"
rm -rf "$work"

if [ -f "$PLUGIN" ]; then
    is "$(nm -D --defined-only "$PLUGIN" | awk '{ print $3 }' |
        grep -vE '^(plugin_(name|type|version)|spank_plugin_version|slurm_spank_.*)$')" "" "the plugin's exports"
    case $(nm -D "$PLUGIN") in
    *__asan_*) skip "the plugin needs only libc" "a build with sanitizers" ;;
    *) is "$(readelf -d "$PLUGIN" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')" "libc.so.6 " "the plugin needs only libc" ;;
    esac
    like "$(readelf -d "$PLUGIN")" 'NODELETE' "it stays loaded"
    like "$(readelf -d "$PLUGIN")" 'BIND_NOW|NOW' "its symbols are bound at load time"
else
    skip "plugin" "it was not built"
fi

# each library has the functions of its header, with its version
libs=$builddir/runtime/.libs
for header in slurmdl slurmdl_comm; do
    lib=$libs/lib$(echo "$header" | tr _ -).so
    version=$(sed -n 's/ {$//p' "$srcdir/runtime/$header.map")
    sed 's,/\*.*\*/,,' "$srcdir/runtime/$header.h" | grep -v '^ \*\|^/\*' | grep -o 'slurmdl_[a-z_]* (' | tr -d ' (' | sort -u >"$work.declared"
    is "$(nm -D --defined-only "$lib" | sed -n "s/.* T \(.*\)@@$version\$/\1/p" | sort)" "$(cat "$work.declared")" \
        "lib$header exports what $header.h declares, as $version"
    is "$(nm -D --defined-only "$lib" | grep -v " T .*@@$version\$" | awk '{ print $2, $3 }')" "A $version" "and nothing else"
done
rm -f "$work.declared"
needed ()
{
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(libslurmdl.*\)\]/\1/p' | tr '\n' ' '
}
is "$(needed "$libs/libslurmdl.so")" "" "libslurmdl needs no other library of ours"
is "$(needed "$libs/libslurmdl-comm.so")" "" "libslurmdl-comm needs none"
is "$(nm -D --undefined-only "$libs/libslurmdl.so" | grep -E ' (socket|connect|accept4?|listen|bind)(@|$)')" "" \
    "libslurmdl opens no socket"
cuda=$builddir/runtime/.libs/slurmdl-cuda.so
if [ -f "$cuda" ]; then
    is "$(nm -D --defined-only "$cuda" | awk '{ print $3 }')" slurmdl_memory_cuda "the CUDA back end's export"
else
    skip "the CUDA back end" "no CUDA here"
fi
done_testing
