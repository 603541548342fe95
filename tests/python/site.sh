# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Install the Python package in the test's work folder.  Source this after lib.sh.
python=${python:-/usr/bin/python3}
package=$srcdir/contrib/python
here=$srcdir/tests/python
# one thread is enough, because the data are small
export OMP_NUM_THREADS=1

has () { # has MODULE...: check for modules without importing them; print the first one that is missing
    $python -c 'import importlib.util, sys; sys.exit(next((f"no python3-{m}" for m in sys.argv[1:] if not importlib.util.find_spec(m)), 0))' "$@"
}

need_package () { # need_package MODULE...
    [ -f "$builddir/contrib/python/.libs/_slurmdl.so" ] || skip_all "no Python headers (python3-dev)"
    missing=$(has "$@" 2>&1) || skip_all "$missing"
    unset DL_DIR DL_ATTEMPT_DIR DL_RUN_DIR DL_LENGTH RANK WORLD_SIZE
    mkdir -p "$work/site/slurmdl"
    cp -r "$package"/slurmdl/*.py "$package/slurmdl/det" "$package/slurmdl/export" "$package/slurmdl/hvd" "$package/slurmdl/imports" "$builddir"/contrib/python/.libs/_slurmdl*.so "$work/site/slurmdl"
    cp -r "$package/hydra_plugins" "$work/site"
    DL_PYTHON=$python
    PYTHONPATH=$work/site:$here
    PYTHONDONTWRITEBYTECODE=1
    export DL_PYTHON PYTHONPATH PYTHONDONTWRITEBYTECODE
}

# Preload the sanitizers, because the interpreter is built without them.  Fails if this build does not use them.
preload_sanitizers () {
    case $CFLAGS in *sanitize*) ;; *) return 1 ;; esac
    LD_PRELOAD=$($CC -print-file-name=libasan.so):$($CC -print-file-name=libubsan.so)
    ASAN_OPTIONS=detect_leaks=0
    export LD_PRELOAD ASAN_OPTIONS
}
