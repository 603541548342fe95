#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs, libraries, the plugin and the Python extensions are built with the compiler's hardening options.
. "$srcdir/tests/lib.sh"
CC=${CC:-cc}

can () { # can FLAG...: whether compiler and linker accept them
    echo 'int main (void) { return 0; }' | $CC -O2 "$@" -Werror -x c - -o /dev/null 2>/dev/null
}

sanitized=
case $CFLAGS in *sanitize*) sanitized=yes ;; esac
libs=$builddir/runtime/.libs
objects="$builddir/launcher/dl $libs/libslurmdl.so $libs/libslurmdl-comm.so"
for f in "$PLUGIN" "$libs"/slurmdl-*.so "$builddir"/contrib/python/.libs/_slurmdl*.so; do
    [ -f "$f" ] && objects="$objects $f"
done
# before installation, libtool's launcher/dl may be a wrapper script
[ -f "$builddir/launcher/.libs/dl" ] && objects="$builddir/launcher/.libs/dl ${objects#* }"

lacks () { # lacks PATTERN COMMAND...: print the objects for which the command's output does not match
    pattern=$1
    shift
    for object in $objects; do
        "$@" "$object" 2>/dev/null | grep -qE "$pattern" || echo "${object#"$builddir"/}"
    done
}

if can -Wl,-z,relro -Wl,-z,now; then
    is "$(lacks GNU_RELRO readelf -lW)" "" "relocations are read-only"
    is "$(lacks 'BIND_NOW|FLAGS.*NOW' readelf -dW)" "" "and resolved at startup"
else
    skip "relocations" "the linker has no -z now"
fi
if can -Wl,-z,noexecstack; then
    is "$(lacks 'GNU_STACK.* RW ' readelf -lW)" "" "no stack is executable"
else
    skip "stacks" "the linker has no -z noexecstack"
fi
if can -fPIE -pie; then
    is "$(objects=${objects%% *}; lacks 'Type: *DYN' readelf -hW)" "" "dl is position-independent"
else
    skip "dl" "no -pie"
fi
if [ -n "$sanitized" ]; then
    skip "the stack protector and fortified calls" "a build with sanitizers"
else
    if can -fstack-protector-strong; then
        is "$(lacks ' __stack_chk_(fail|guard)' nm -D)" "" "stacks are protected"
    else
        skip "the stack protector" "the compiler lacks it"
    fi
    case $CFLAGS in
    *-O0*) skip "fortified calls" "no optimiser" ;;
    *)
        if can -D_FORTIFY_SOURCE=2 -Wno-error; then
            # small modules may have no such calls
            is "$(lacks ' __[a-z]*_chk(@|$)' nm -D | grep -v slurmdl-)" "" "calls are fortified"
        else
            skip "fortified calls" "the compiler lacks them"
        fi
        ;;
    esac
fi
# the linker marks its output only if all of its input has the marks, including the startup files of the C library
unmarked () { # unmarked FILE...: print the files without the marks
    for f; do
        readelf -nW "$f" 2>/dev/null | grep -q 'IBT.*SHSTK' || basename "$f"
    done
}
starts=$(for f in Scrt1.o crti.o crtn.o crtbeginS.o crtendS.o; do $CC -print-file-name=$f; done)
# shellcheck disable=SC2086
if ! can -fcf-protection || [ "$(uname -m)" != x86_64 ]; then
    skip "jump targets are marked (CET)" "no -fcf-protection here"
elif [ -n "$(unmarked $starts)" ]; then
    skip "jump targets are marked (CET)" "$(unmarked $starts | head -1) of this system has none, so that no file that is linked has them"
else
    is "$(unmarked $objects)" "" "jump targets are marked (CET)"
fi
# stack clash protection touches a large frame page by page, with an instruction that has no other use
if can -fstack-clash-protection && [ "$(uname -m)" = x86_64 ] && command -v objdump >/dev/null; then
    is "$(objects="${objects%% *} $libs/libslurmdl.so $PLUGIN"; lacks 'or[qlb]? +\$0x0,.*\(%rsp\)' objdump -d)" "" "stacks are probed (stack clash protection)"
else
    skip "stacks are probed (stack clash protection)" "the compiler lacks the flag, or there is no objdump"
fi

# ---- the extension that pip builds

python=/usr/bin/python3
if [ -f "$builddir/contrib/python/.libs/_slurmdl.so" ] && [ -z "$sanitized" ] && cp -r "$srcdir/contrib/python/." package; then
    mkdir out objects
    cat >build.py <<'END'
import os, sys
sys.path.insert(0, os.environ["srcdir"] + "/contrib/python")
sys.dont_write_bytecode = True
import backend
os.environ.pop("CFLAGS", None)
flags = backend.bundled(backend.EXTENSIONS[0][3])
print(backend.build_extension(backend.Compiler("objects"), "out", *backend.EXTENSIONS[0][:2], flags))
END
    PATH=$PATH timeout 500 $python build.py >built 2>&1 || sed 's/^/# /' built
    objects=$(ls out/*.so)
    is "$(ls out | wc -l)" 1 "pip builds an extension"
    is "$(lacks GNU_RELRO readelf -lW)$(lacks 'BIND_NOW|FLAGS.*NOW' readelf -dW)$(lacks ' __stack_chk_fail' nm -D)$(lacks ' __[a-z]*_chk(@|$)' nm -D)" \
        "" "pip's extension is built with them"
    is "$($CC -O2 -dM -E -x c /dev/null | grep -c _FORTIFY_SOURCE)$(grep -c 'redefined' built)" 00 "and no option is given twice"
else
    skip "pip's extension" "not here"
fi
done_testing
