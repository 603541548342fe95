#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What make install puts where, what is left of it.
. "$srcdir/tests/lib.sh"

[ -f "$builddir/Makefile" ] || skip_all "not in a build folder"
root=$work/root
make_ () { # make_ TARGET...
    MAKEFLAGS='' timeout 3000 make -s -C "$builddir" DESTDIR="$root" "$@" >"$work/make.out" 2>&1 ||
        { tail -5 "$work/make.out" | sed 's/^/# /'; return 1; }
}

make_ install-exec install-data
ok $? "make install with DESTDIR"
(cd "$root" && find . ! -type d | sed 's,^\./,,' | sort) >"$work/files"
like "$(cat "$work/files")" "bin/dl\$" "the program is there"
like "$(cat "$work/files")" "man/man7/dl-cookbook.7\$" "so is a page that is made"
is "$(grep '\.la$' "$work/files" | grep -v '/libslurmdl[^/]*\.la$')" "" "no file of libtool is beside the plugin and the modules"
is "$(cd "$root" && find . ! -type l ! -perm 644 ! -perm 755)" "" "modes are 644 and 755"
is "$(cd "$root" && find . -type f -perm 755 ! -name dl ! -name '*.so' ! -name '*.so.*' ! -name '*.la')" "" \
    "what is executable is a program or a library"
is "$(cd "$root" && grep -rlF "$work" .)" "" "no file names DESTDIR"

# ---- and away again

make_ uninstall
ok $? "make uninstall"
is "$(find "$root" ! -type d)" "" "no file is left"
is "$(find "$root" -name slurm-dl)" "" "no folder of slurm-dl is left"
done_testing
