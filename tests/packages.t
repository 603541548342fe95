#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian and RPM packages: names, files, dependencies, versions; and autoconf 2.69, the oldest that we support.
. "$srcdir/tests/lib.sh"

[ -f "$builddir/Makefile" ] || skip_all "not in a build folder"
facts=$srcdir/contrib/package-facts
soak=${DL_TEST_SOAK:-}

# ---- the version of a clone increases with each commit

later () { # later NEW OLD: whether dpkg considers NEW the higher version
    if command -v dpkg >/dev/null; then
        dpkg --compare-versions "$1" gt "$2"
    else
        [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]
    fi
}
raises () { # raises NAME: check that the clone's version is higher than at the last call
    before=$now
    now=$(clone/contrib/package-facts version)
    later "$now" "$before"
    ok $? "$1: $now after $before"
}
if command -v git >/dev/null; then
    mkdir -p clone/contrib
    cp "$facts" clone/contrib
    cp "$srcdir/configure.ac" clone
    git_ () {
        git -c user.name=t -c user.email=t -c init.defaultBranch=main -C clone "$@" >/dev/null
    }
    git_ init
    git_ add .
    git_ commit -m one
    now=$(clone/contrib/package-facts version)
    like "$now" '^[0-9.]+~git1\.[0-9a-f]{8}$' "the first commit"
    echo >>clone/configure.ac
    raises "changes"
    is "$(clone/contrib/package-facts version)" "$now" "they have the same version"
    touch -d '+2 seconds' clone/configure.ac
    raises "further changes"
    git_ commit -am two
    raises "a commit of them"
    for k in 3 4 5 6 7 8 9; do git_ commit --allow-empty -m $k; done
    raises "nine"
    git_ commit --allow-empty -m ten
    raises "ten"
    git_ tag "v${now%%~*}"
    raises "the release"
    is "$now" "${before%%~*}" "its number alone"
    git clone -q --depth 1 "file://$work/clone" shallow
    is "$(shallow/contrib/package-facts version 2>&1)" "package-facts: a shallow clone does not have the number of commits: run git fetch --unshallow" "a shallow clone"
else
    skip "the version of a clone" "no git"
fi

# ---- two releases of Slurm, each in its own prefix

slurm () { # slurm PREFIX NUMBER FOLDER
    mkdir -p "$1/include/slurm" "$1/bin" "$1/$3"
    for f in /usr/include/slurm/*.h; do [ ! -f "$f" ] || cp "$f" "$1/include/slurm"; done
    echo "#define SLURM_VERSION_NUMBER $2" >"$1/include/slurm/slurm_version.h"
    : >"$1/bin/srun"
}
new=$work/opt/slurm-25.11
old=$work/opt/slurm-24.11
slurm "$new" 0x190b07 lib/slurm
slurm "$old" 0x180b05 lib64/slurm
is "$("$facts" release "$new") $("$facts" release "$old") $("$facts" plugindir "$old")" "25.11 24.11 $old/lib64/slurm" "release and PluginDir of a prefix"
is "$("$facts" release "$work/none" 2>&1)" "package-facts: $work/none/include/slurm/slurm_version.h: not found: install the headers of Slurm" "without one"

# ---- a source tree as in a release tarball, and the files that make install would put into the packages

value () { # value NAME: print a variable of the Makefile
    printf 'include Makefile\nprint-%s:\n\t@echo $(%s)\n' "$1" "$1" | MAKEFLAGS='' make -s -C "$builddir" -f - "print-$1"
}
prefix=$(value prefix)
if [ -z "$soak" ]; then
    MAKEFLAGS='' timeout 3000 make -s -C "$builddir" DESTDIR="$work/root" install-exec install-data >make.out 2>&1 || tail -5 make.out
    mkdir stage
    mv "$work/root$prefix" stage/usr
    mv "stage/usr/lib/slurm/dl.so" stage 2>/dev/null || cp "$PLUGIN" stage
    mv stage/usr/share/slurm-dl/plugstack.conf.d stage
    rm -rf stage/usr/lib/slurm stage/usr/lib/slurm-dl
fi
tree () { # tree FOLDER
    mkdir "$1"
    (cd "$srcdir" && tar cf - --exclude=./build --exclude=./.git --exclude=autom4te.cache --exclude='*.o' --exclude='*.lo' --exclude='*.la' \
        --exclude=.libs --exclude=./Makefile --exclude=./config.status .) | tar xf - -C "$1"
    echo "0.1.0~git7.12345678" >"$1/.version"
    [ -n "$soak" ] || {
        mkdir -p "$1/contrib/python/.libs"
        : >"$1/contrib/python/.libs/_slurmdl.so"
        : >"$1/contrib/python/.libs/_slurmdl_comm.so"
    }
}
# Only a soak compiles.  Otherwise these stand in for configure and make, so that the packaging alone is tested.
mkdir bin bin/all
echo 'exec true' >bin/quiet
program bin/configured <<END
printf '%s\n' "\$@" >$work/configured
END
program bin/stage <<END
# stage FOLDER LIBDIR MAKE'S WORD...
to=\$1 lib=\$2
mkdir -p "\$to"
cp -a $work/stage/usr "\$to"
[ "\$lib" = lib ] || { mv "\$to/usr/lib" "\$to/usr/lib.new" && mkdir -p "\$(dirname "\$to/usr/\$lib")" && mv "\$to/usr/lib.new" "\$to/usr/\$lib"; }
for word; do
    case \$word in plugstackdir=*) mkdir -p "\$to\${word#*=}" && cp -a $work/stage/plugstack.conf.d/. "\$to\${word#*=}" ;; esac
done
dir=\$(sed -n 's/^--with-slurm-plugindir=//p' $work/configured)
mkdir -p "\$to\$dir" && cp $work/stage/dl.so "\$to\$dir"
END
program bin/dh_auto_install <<END
exec $work/bin/stage debian/tmp lib/\$(dpkg-architecture -q DEB_HOST_MULTIARCH) "\$@"
END
chmod +x bin/quiet
ln -s configured bin/dh_auto_configure
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >%s\n' "$work/built" >bin/dh_auto_build
chmod +x bin/dh_auto_build
for p in dh_autoreconf dh_autoreconf_clean dh_update_autotools_config autoreconf; do ln -s quiet bin/$p; done
path=$PATH
[ -n "$soak" ] || path=$work/bin:$PATH

common () { # common LIST LIST...: print lines that are in more than one list
    cat "$@" | sort | uniq -d
}

# ---- Debian

deb () { # deb NAME [VARIABLE=VALUE]...: build the packages in NAME/
    name=$1
    shift
    rm -rf "$name" && mkdir "$name"
    mv tree "$name/tree"
    (cd "$name/tree" && rm -rf debian && cp -r contrib/deb debian &&
        env -u MAKEFLAGS PATH="$path" DEB_BUILD_OPTIONS='nocheck noautodbgsym noopt' DPKG_DEB_COMPRESSOR_TYPE=none "$@" \
            timeout 3000 dpkg-buildpackage -b -us -uc -d) >"$name.out" 2>&1
    is $? 0 "dpkg-buildpackage $*"
    ls "$name"/slurm-dl_*.deb >/dev/null 2>&1 || tail -n 15 "$name.out" | sed 's/^/# /'
    mv "$name/tree" tree
    for f in "$name"/slurm-dl-plugin*.deb; do
        dpkg-deb -c "$f" | awk '!/^d/ { print $6 }' >"$name.files"
    done
}
field () { # field FILE NAME
    dpkg-deb -f "$1" "$2"
}
if command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null; then
    [ -d tree ] || tree tree
    arch=$(dpkg --print-architecture)
    deb new SLURM="$new/"
    version=0.1.0~git7.12345678
    is "$(cd new && ls -- *.deb | tr '\n' ' ')" \
        "python3-slurmdl_${version}_$arch.deb slurm-dl-dev_${version}_$arch.deb slurm-dl-plugin-25.11_${version}_$arch.deb slurm-dl_${version}_$arch.deb " \
        "SLURM=PREFIX in the environment: a plugin package of that release"
    plugin=new/slurm-dl-plugin-25.11_${version}_$arch.deb
    like "$(cat new.files)" "^\.$new/lib/slurm/dl\.so\$" "dl.so is in the PluginDir there"
    like "$(cat new.files)" "^\.$new/share/slurm-dl/plugstack.conf.d/dl\.conf\$" "with a file for include"
    [ -n "$soak" ] || is "$(grep -e --with-slurm configured | tr '\n' ' ')" "--with-slurm=$new --with-slurm-plugindir=$new/lib/slurm " "configure gets the options"
    [ -n "$soak" ] || is "$(grep plugstackdir built)" "plugstackdir=$new/share/slurm-dl/plugstack.conf.d" "and make gets the place of the files for plugstack.conf"
    like "$(cat new.files)" "^\.$new/share/slurm-dl/plugstack.conf.d/dl\.so-is-not-loaded\$" "they are there"
    is "$(field "$plugin" Depends | sed 's/libc6 (>= [0-9.]*)/libc6/'), $(field "$plugin" Recommends)" "libc6, " "it needs only the C library, and pulls in nothing"
    like "$(field "$plugin" Description)" 'It needs the C library only' "and says so"
    for doc in administrator.md NEWS.md SECURITY.md plugin-cost.md dl-spank.8; do
        like "$(cat new.files)" "^\./usr/share/doc/slurm-dl-plugin-25\.11/$doc(\.gz)?\$" "the documents are there: $doc"
    done
    dpkg-deb -c "new/slurm-dl_${version}_$arch.deb" >files
    for doc in README.md NEWS.md SECURITY.md administrator.md plugin-cost.md security.md; do
        like "$(cat files)" " \./usr/share/doc/slurm-dl/$doc\$" "and in slurm-dl: $doc"
    done
    like "$(cat files)" " \./usr/share/man/man8/dl-spank\.8\.gz\$" "dl-spank(8), too"
    is "$(field "new/slurm-dl-dev_${version}_$arch.deb" Depends)" "slurm-dl (= $version)" "the headers go with their libraries"

    deb old SLURM="$old"
    is "$(common new.files old.files)" "" "two releases on one node: no file is in both plugin packages"
    is "$(basename old/slurm-dl-plugin*)" "slurm-dl-plugin-24.11_${version}_$arch.deb" "nor do they share a name"
    deb named SLURM="$new" PLUGINDIR=/srv/plugins
    like "$(cat named.files)" "^\./srv/plugins/dl\.so\$" "PLUGINDIR"
    if [ -f /usr/include/slurm/slurm_version.h ]; then
        deb system
        release=$("$facts" release)
        is "$(field system/slurm-dl-plugin_*.deb Depends | sed 's/libc6 (>= [0-9.]*)/libc6/')" "libc6, slurm-client (>= $release), slurm-client (<< $release.99)" \
            "without SLURM: Debian's Slurm, and its release"
        like "$(cat system.files)" "^\./usr/lib/.*/slurm-wlm/dl\.so\$" "in its PluginDir"
    else
        skip "Debian's Slurm" "no libslurm-dev"
    fi
    (cd tree && rm -rf debian && cp -r contrib/deb debian && SLURM=$work/none make -s -f debian/rules -n override_dh_auto_configure) >out 2>&1
    like "$(cat out)" "package-facts: $work/none.*: not found: " "no Slurm there: one line says so"
else
    skip "packages of Debian" "no dpkg-buildpackage and debhelper"
fi

# ---- rpm

rpms () { # rpms NAME [RPMBUILD-OPTION]...: build the packages in NAME/
    name=$1
    shift
    [ -n "$soak" ] || set -- --define "configure $work/bin/configured" --define "make_build $work/bin/dh_auto_build" --define "make_install $work/bin/stage %{buildroot} %{_lib}" "$@"
    (cd tree && rm -rf debian && env -u MAKEFLAGS HOME="$work" PATH="$path" timeout 3000 rpmbuild -bb --build-in-place --nodeps \
        --define "_topdir $work/$name" --define "_rpmdir $work/$name" --define '_binary_payload w0.gzdio' --define 'debug_package %{nil}' --define '_build_id_links none' \
        "$@" contrib/slurm-dl.spec) >"$name.out" 2>&1
    is $? 0 "rpmbuild --build-in-place $name"
    find "$name" -name '*.rpm' | grep -q . || grep -v '^+' "$name.out" | tail -n 15 | sed 's/^/# /'
    rpm -qlp "$name"/*/slurm-dl-plugin*.rpm 2>/dev/null | grep -v '/plugstack.conf.d$\|/share/slurm-dl$\|/share/doc/slurm-dl-plugin[^/]*$\|/licenses/[^/]*$' >"$name.files"
}
needs () { # needs FILE: print what it requires, except what every package requires
    rpm -qp --requires "$1" 2>/dev/null | grep -v '^rpmlib(\|^rtld(\|^/bin/sh$' | sort | tr '\n' ';'
}
if command -v rpmbuild >/dev/null; then
    [ -d tree ] || tree tree
    rpms rpmnew --define "slurm $new"
    plugin=$(find rpmnew -name 'slurm-dl-plugin*')
    is "$(basename "$plugin" | sed 's/-1[^-]*$//')" "slurm-dl-plugin-25.11-0.1.0~git7.12345678" "rpm: one command, a package of that release"
    like "$(cat rpmnew.files)" "^$new/lib/slurm/dl\.so\$" "rpm: dl.so is in the PluginDir there"
    [ -n "$soak" ] || is "$(grep plugstackdir built)" "plugstackdir=$new/share/slurm-dl/plugstack.conf.d" "rpm: make is reported where the rest of the package is"
    like "$(cat rpmnew.files)" "/slurm-dl-plugin-25\.11(-[^/]*)?/administrator\.md\$" "rpm: the documents are there"
    is "$(needs "$plugin" | sed 's/libc\.so\.6([A-Z0-9_.]*)(64bit);//g')" "" "rpm: it needs the C library only"
    like "$(rpm -qlp rpmnew/*/slurm-dl-0*.rpm 2>/dev/null)" '/doc/slurm-dl/plugin-cost\.md$' "rpm: slurm-dl has the rest"
    rpms rpmold --define "slurm $old"
    is "$(common rpmnew.files rpmold.files)" "" "rpm: two releases on one node: no file is in both"
    # pretend that a package owns this Slurm: the plugin then requires that release
    program bin/rpm <<END
case "\$*" in "-qf "*"$new/bin/srun") echo slurm-site ;; *) exec $(command -v rpm) "\$@" ;; esac
END
    path=$work/bin:$PATH
    is "$(cd tree && PATH=$path rpmspec -q --nodebuginfo --requires --define "slurm $new" contrib/slurm-dl.spec 2>/dev/null | grep slurm-site | sort | tr '\n' ';')" \
        "slurm-site < 25.11.99;slurm-site >= 25.11;" "rpm: the release of a packaged Slurm is pinned"
    rm bin/rpm
    if [ -f /usr/include/slurm/slurm_version.h ]; then
        is "$(cd tree && rpmspec -q --requires contrib/slurm-dl.spec 2>/dev/null | grep '^slurm ' | sort | tr '\n' ';')" \
            "slurm < $("$facts" release).99;slurm >= $("$facts" release);" "rpm: so is that of the distribution"
    else
        skip "rpm: the distribution's release" "no headers of Slurm"
    fi
else
    skip "packages of rpm" "no rpmbuild"
fi

# ---- autoconf 2.69, of Rocky and RHEL 8 and 9

if command -v autoreconf2.69 >/dev/null && command -v automake >/dev/null; then
    rm -rf tree
    tree tree
    (cd tree && rm -rf configure aclocal.m4 build-aux && AUTOCONF=autoconf2.69 AUTOHEADER=autoheader2.69 AUTOM4TE=autom4te2.69 \
        timeout 1200 autoreconf2.69 -fi) >out 2>&1
    is $? 0 "autoconf 2.69: autoreconf"
    [ -f tree/configure ] || tail -n 10 out | sed 's/^/# /'
    like "$(head -n 3 tree/configure)" 'Autoconf 2\.69' "it made configure"
    # shellcheck disable=SC2046
    (cd tree && timeout 1200 ./configure -q --without-python --without-mpi --without-pmix --without-cuda --without-nccl --without-cmocka \
        CFLAGS=-O0 && env -u MAKEFLAGS timeout 1200 make -s launcher/version.h $([ ! -f /usr/include/slurm/spank.h ] || echo spank/dl.la)) >out 2>&1
    is $? 0 "which configures, and make works"
    is "$(cat tree/launcher/version.h)" '#define DL_VERSION "0.1.0~git7.12345678"' "a tarball has its version"
else
    skip "autoconf 2.69" "no autoconf2.69"
fi
done_testing
