#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The plugin next to another one, with the headers of other Slurm releases, and built for another release.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster

# ---- other releases: spank.h differs in two declarations from 22.05 to 26.05
headers () { # headers RELEASE NUMBER: make headers like those of that release
    mkdir -p "$1/slurm"
    cp /usr/include/slurm/*.h "$1/slurm"
    echo "#define SLURM_VERSION_NUMBER $2" >"$1/slurm/slurm_version.h"
    case $1 in 22.05 | 23.02) return ;; esac
    added='spank_err_t spank_prepend_task_argv (spank_t spank, int argc, const char *argv[]);'
    case $1 in 25* | 26*) added="$added extern int slurm_spank_init_failure_mode;" ;; esac
    sed "s/^#define SPANK_PLUGIN/$added\n&/" /usr/include/slurm/spank.h >"$1/slurm/spank.h"
}
if [ -f /usr/include/slurm/spank.h ]; then
    for r in 22.05:0x160500 23.02:0x170200 23.11:0x170b00 24.11:0x180b00 25.05:0x190500 26.05:0x1a0500; do
        headers ${r%:*} ${r#*:}
        : >err
        for f in "$srcdir"/spank/*.c; do
            ${CC:-cc} -fsyntax-only -std=gnu11 -D_GNU_SOURCE -Wall -Werror -I${r%:*} -I"$srcdir" -DSYSCONFDIR='""' -DBINDIR='""' -DDEBUGDIR='""' -DPLUGSTACKDIR='""' "$f" 2>>err
        done
        is "$(cat err)" "" "the headers of ${r%:*}"
    done
    case $(slurmd -V) in
    *" 26.05"*) other=22.05 ;;
    *) other=26.05 ;;
    esac
    variant "$work/other.so" -I$other
    ok $? "a plugin for another release"
else
    skip "the headers of other releases" "spank.h is elsewhere"
fi
other_plugin "$work/container.so" "$srcdir/tests/cluster/hooks/container.c"
ok $? "another plugin"

cluster_up beside --nodes=1
dl="optional $PLUGIN"
container="optional $work/container.so"
load () { # load LINE...: replace plugstack.conf
    printf '%s\n' "$@" >"$plugstack"
}
show='echo "$RANK $CONTAINER_SAW $CONTAINER_99 $(env | grep -c "^CONTAINER_[0-9]")"'
load "$dl" "$container"
is "$(timeout 300 srun -Q -n1 --dl=torch --container-image=a.sqsh sh -c "$show")" "0 0 a.sqsh 100" "before another plugin: both work, and it sees the rank"
load "$container" "$dl"
is "$(timeout 300 srun -Q -n1 --container-image=a.sqsh --dl=torch --dl-bind=closest sh -c "$show")" "0 none a.sqsh 100" "after it: both work"
is "$(timeout 300 srun -Q -n1 --container-image=a.sqsh sh -c "$show")" " none a.sqsh 100" "the other alone"
is "$(timeout 300 srun -Q -n1 --dl=torch sh -c "$show")" "0   0" "ours alone"
timeout 300 sbatch -Q -W --dl=torch --container-image=b -n1 -o out --wrap "srun -Q sh -c '$show'" >/dev/null
is "$(cat out)" "0 none b 100" "through sbatch"
load "$container same" "$dl when=gpus:any default=torch"
out=$(timeout 300 srun -Q -n1 sh -c 'echo "rank $RANK"' 2>&1)
like "$out" '^rank 0$' "another plugin has the same option: the job runs, and the site's default acts"
like "$out" 'provided by both dl.so and container.so' "and Slurm reports it"

# ---- a plugin of another release
if [ -f other.so ]; then
    load "optional $work/other.so" "$container"
    out=$(timeout 300 srun -Q -n1 --container-image=a sh -c "$show" 2>&1)
    like "$out" '^ none a 100$' "optional, and built for another release: jobs run without it"
    like "$out" 'ncompatible' "and Slurm says so"
fi
unharmed
done_testing
