#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make install and uninstall; and each installed file is in exactly one package of contrib/deb and of the .spec.
. "$srcdir/tests/lib.sh"

[ -f "$builddir/Makefile" ] || skip_all "not in a build folder"
root=$work/root
value () { # value NAME: print a variable of the Makefile
    printf 'include Makefile\nprint-%s:\n\t@echo $(%s)\n' "$1" "$1" | MAKEFLAGS='' make -s -C "$builddir" -f - "print-$1"
}
make_ () { # make_ TARGET...
    MAKEFLAGS='' timeout 3000 make -s -C "$builddir" DESTDIR="$root" "$@" >"$work/make.out" 2>&1 ||
        { tail -5 "$work/make.out" | sed 's/^/# /'; return 1; }
}
prefix=$(value prefix)
plugindir=$(value spankdir)

umask 077 # even then, all users must be able to read the files
make_ install-exec install-data
ok $? "make install with DESTDIR"
umask 022
(cd "$root" && find . ! -type d | sed 's,^\./,,' | sort) >"$work/files"
like "$(cat "$work/files")" "bin/dl\$" "the program is installed"
like "$(cat "$work/files")" "man/man7/dl-cookbook.7\$" "so is a generated page"
is "$(grep '\.la$' "$work/files" | grep -v '/libslurmdl[^/]*\.la$')" "" "no libtool file is beside the plugin and the modules"
is "$(cd "$root" && find . ! -type l ! -perm 644 ! -perm 755)" "" "modes are 644 and 755"
is "$(cd "$root" && find . -type f -perm 755 ! -name dl ! -name dl.so-is-not-loaded ! -name '*.so' ! -name '*.so.*' ! -name '*.la')" "" \
    "executable files are programs, libraries, or files that srun runs"
is "$(cd "$root" && grep -rlF "$work" .)" "" "no file names DESTDIR"

# ---- build against the installed files, away from the sources

PKG_CONFIG_SYSROOT_DIR=$root
PKG_CONFIG_PATH=$root$(value libdir)/pkgconfig
LD_LIBRARY_PATH=$root$(value libdir)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
cp -r "$srcdir/contrib/examples" "$work"
for file in digits/digits digits/elastic parallel/parallel; do
    sed -n '/^ \* *cc /{ :more
s/^ \* *//p
/\\$/{ n
b more
}
}' "$work/examples/$file.c" | sed "s,^cc ,${CC:-cc} ," >"$work/command"
    (cd "$work/examples/${file%/*}" && sh "$work/command") >"$work/cc.out" 2>&1
    is "$? $(test -x "$work/examples/$file" && head -3 "$work/cc.out")" "0 " "the command in the first lines of $file.c"
done
is "$(cd "$root$(value pkgdatadir)/python" && PYTHONDONTWRITEBYTECODE=1 python3 -c 'import backend; print(backend.version())' 2>&1)" "$(value PACKAGE_VERSION)" \
    "the Python package is installed, with the library's version"
is "$(cd "$root$(value pkgdatadir)/python" && PYTHONDONTWRITEBYTECODE=1 PKG_CONFIG_PATH=/nowhere PKG_CONFIG_LIBDIR=/nowhere python3 -c 'import backend; backend.version()' 2>&1)" \
    "slurmdl: libslurmdl is not installed (pkg-config slurmdl; PKG_CONFIG_PATH), and its sources are not here: copy the whole tree" \
    "without the library it says what is missing"
if python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null; then
    cp -r "$srcdir/contrib/python" "$work"
    mkdir "$work/site"
    cp -r "$work/python/slurmdl" "$work/site"
    CFLAGS="-O0 $CFLAGS" python3 "$work/python/backend.py" "$work/site/slurmdl" linked >"$work/cc.out" 2>&1
    is "$? $(grep -v '^_slurmdl' "$work/cc.out" | head -3)" "0 " "the extensions of Python, linked"
    case $CFLAGS in
    *sanitize*) skip "they work" "an interpreter without sanitizers" ;;
    *)
        is "$(cd "$work" && LD_LIBRARY_PATH=$LD_LIBRARY_PATH PYTHONPATH=$work/site python3 -c 'import slurmdl, slurmdl.comm
slurmdl.init("w").log("a", 1, 1); print(slurmdl._slurmdl.__file__.startswith("'"$work"'/site/"))' 2>&1 | tail -1)" True "they work"
        ;;
    esac
else
    skip "Python" "no Python headers (python3-dev)"
fi
unset PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH

# ---- packages

# Print lines "PACKAGE PATTERN", with X for the library folder.
deb () {
    for f in "$srcdir"/contrib/deb/*.install; do
        sed "s,^,$(basename "$f" .install) ,; s,lib/\*/,X/," "$f"
    done
    printf 'slurm-dl-plugin %s\n' plugin usr/share/slurm-dl/plugstack.conf.d
}
spec () {
    awk '/^%files/ { p = $0; next } p && /^%\{/ { gsub(/ /, "_", p); print p, $1 }' "$srcdir/contrib/slurm-dl.spec" | sed '
        /modules:/d; /python3_sitearch/d
        s,%{_bindir},usr/bin,; s,%{_libdir},usr/X,; s,%{_datadir},usr/share,; s,%{_mandir},usr/share/man,
        s,%{_docdir},usr/share/doc,; s,%{name},slurm-dl,; s,%{shared},usr/share/slurm-dl,
        s,%{_includedir},usr/include,; s,%{plugindir}/dl.so,plugin,'
}
# Map the installed files to the paths in packages: below usr, without modules and libtool files.
sed "s!^${plugindir#/}/dl.so\$!plugin!; s!^${prefix#/}/!usr/!; s!^usr/lib64/!usr/lib/!; s!^usr/lib/[^/]*-linux-[^/]*/!usr/lib/!" "$work/files" |
    sed '\!^usr/lib/slurm-dl/!d; \!/libslurmdl[^/]*\.la$!d; s!^usr/lib/!usr/X/!' >"$work/packaged"
like "$(cat "$work/packaged")" '^usr/X/libslurmdl.so.0$' "contents of the packages"
for kind in deb spec; do
    $kind >"$work/$kind"
    : >"$work/wrong"
    while read -r file; do
        in=
        while read -r package pattern; do
            # shellcheck disable=SC2254
            case $file in $pattern | $pattern/*) in="$in $package" ;; esac
        done <"$work/$kind"
        case $in in *' '*' '* | '') echo "$file: in$in" >>"$work/wrong" ;; esac
    done <"$work/packaged"
    is "$(cat "$work/wrong")" "" "contrib, $kind: each file is in one package"
done
version=$(value PACKAGE_VERSION)
is "$(sed -n '1s/.*(\(.*\)).*/\1/p' "$srcdir/contrib/deb/changelog")" "$version" "the version of contrib/deb"

# ---- uninstall

make_ uninstall
ok $? "make uninstall"
is "$(find "$root" ! -type d)" "" "no file is left"
is "$(find "$root" -name slurm-dl)" "" "no folder of slurm-dl is left"
done_testing
