#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# slurmdl.h in C++ and Fortran programs, and the Python code of doc/formats.md
. "$srcdir/tests/lib.sh"
abs_src=$(cd "$srcdir" && pwd)
lib=$builddir/runtime/.libs
LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
unset DL_ATTEMPT_DIR
case $CFLAGS in
*-fsanitize*) skip_all "the library needs the sanitizers' run time" ;;
esac

cat >prog.cc <<'END'
#include <slurmdl.h>

int main ()
{
    slurmdl_error err;
    slurmdl *run = slurmdl_open ("run", &err);
    struct slurmdl_metric *loss = slurmdl_metric (run, "training/loss");
    double v[] = { 1, 2, 3 };
    for (int i = 0; i < 10; i++)
        if (slurmdl_log_to (loss, i, i) < 0)
            return 2;
    if (slurmdl_log_vector (run, "v", 1, 3, v) < 0
        || slurmdl_log_samples (run, "s", 1, SLURMDL_F64, 3, v) < 0)
        return 3;
    return slurmdl_close (run) < 0;
}
END
length () { # length DATASET FILE
    h5dump -H -d "/$1" "$2" | sed -n 's/.*DATASPACE  SIMPLE { ( \([0-9]*\) ).*/\1/p'
}
if command -v g++ >/dev/null; then
    for std in c++11 c++17; do
        g++ -std=$std -Wall -Wextra -pedantic -Werror -I"$abs_src/runtime" prog.cc -L"$lib" -lslurmdl -o prog && ./prog
        ok $? "C++: a program is compiled as $std without a warning, and runs"
    done
    holds "C++: what it logged is in the file" [ "$(length metrics run/a.2/metrics.h5) $(length records run/a.2/metrics.h5)" = "11 3" ]
fi
if [ -f run/a.1/metrics.h5 ] && /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    sed "/^## Checkpoint/,\$d" "$abs_src/doc/formats.md" | sed -n "/^    import h5py\$/,/^\$/s/^    //p" | sed "/^import pandas/,\$d" >read.py
    echo 'print(len(rows), len(records), vectors[0][2], counts.sum(), edges[-1])' >>read.py
    (cd run/a.1 && /usr/bin/python3 ../../read.py) >out 2>&1
    is "$(tail -n 1 out)" "10 2 3.0 3 3.0" "Python: the lines of doc/formats.md read it"
fi
if command -v gfortran >/dev/null; then
    gfortran -std=f2008 -Wall -Wextra -Werror "$abs_src/contrib/fortran/slurmdl.f90" "$abs_src/contrib/fortran/fit.f90" \
        -L"$lib" -lslurmdl -o fit
    ok $? "Fortran: the module and its example are compiled without a warning"
    DL_RUN_DIR=$work/f DL_HP_lr=0.25 ./fit >out && grep -q '^20  *4.547E-12$' out
    ok $? "Fortran: it fits"
    DL_RUN_DIR=$work/f ./fit >out && grep -q '^20  *4.547E-12$' out
    ok $? "Fortran: it continues from its checkpoint"
    # a.1: the null record, 20 vectors, 2 "saved" events; a.2: the null record, "resumed", "restored"
    holds "Fortran: what it logged is in the file" [ "$(length metrics f/a.1/metrics.h5) $(length records f/a.1/metrics.h5) $(length records f/a.2/metrics.h5)" = "21 23 3" ]
fi
done_testing
