#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# With the plugin, slurmd and slurmstepd access nothing more as root than without it, except dl.so.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster
[ "$(id -u)" -eq 0 ] || skip_all "needs root, for jobs of another user"
command -v strace >/dev/null && command -v setpriv >/dev/null && command -v python3 >/dev/null || skip_all "no strace, setpriv or python3"
strace -f -o /dev/null true 2>/dev/null || skip_all "strace may not trace here"
chmod 755 "$work"
# copies of the plugin and dl that another user can read, a profile, and that user's home directory
cp "$PLUGIN" dl.so
mkdir nccl.d home
printf 'NCCL_IB_SL=3\n' >nccl.d/site.conf
printf '#!/bin/sh\nexit 0\n' >dl
chmod +x dl
chown nobody home
line="optional $work/dl.so nccl_dir=$work/nccl.d dl=$work/dl"

own_stepd
program bin/slurmstepd <<END
exec strace -f -qq -s 4096 -e trace=file,network,process,%creds -e signal=none -o $work/trace.\$\$ $stepd "\$@"
END
PATH=$work/bin:$PATH cluster_up asroot --nodes=1
chmod 1777 "${SLURM_CONF%/*}"/tmp-*

ended () {
    ! squeue -h -o %i | grep -q . && ! pgrep -f "$stepd.*$work" >/dev/null
}
as_nobody () {
    (cd home && HOME=$work/home timeout 300 setpriv --reuid=nobody --regid=nogroup --clear-groups "$@") </dev/null
}
traced () { # traced NAME OPTION...: trace a step and a batch job of the user nobody
    into=$1
    shift
    rm -f trace.*
    as_nobody srun -Q -n1 "$@" sh -c 'id -un; echo "rank $RANK"' >"$into.out" 2>"$into.err"
    as_nobody sbatch -Q -n1 "$@" -o "$work/home/$into.batch" --wrap 'srun -Q -n1 true; id -un' >/dev/null 2>>"$into.err"
    wait_for 300 ended
    wait_for 300 test -s "$work/home/$into.batch"
    for t in trace.*; do
        python3 "$srcdir/tests/cluster/touched.py" "$t"
    done | sed "s|/tmp/dl-test\.[A-Za-z0-9#]*/|WORK/|g" | sort -u >"$into.touched"
    cat trace.* >"$into.trace"
}
: >"$plugstack"
traced off
traced off2
echo "$line" >"$plugstack"
traced idle
traced on --dl=torch --dl-bind=closest,nic --dl-nccl=site

is "$(head -1 off.out) $(sort off.out | head -1)" "nobody nobody" "jobs run as another user"
is "$(tail -1 on.out)" "rank 0" "the plugin acts for that user"
[ "$(wc -l <off.touched)" -gt 50 ]
ok $? "the trace sees what root touches: $(wc -l <off.touched) things"
like "$(cat off.touched)" '^openat .*plugstack.conf$' "plugstack.conf among them"
sort -u off.touched off2.touched >slurm.touched
for what in idle on; do
    # the plugin in srun may read its command line, to find GPU options for site defaults
    is "$(comm -13 slurm.touched $what.touched | grep -v -e '^openat WORK/dl\.so$' -e '^openat /proc/self/cmdline$')" "" "$what: root touches nothing else except dl.so"
    is "$(grep -cx 'openat WORK/dl.so' $what.touched)" 1 "$what: and it does touch that"
done
# the traces are complete: they have the files that the plugin reads as the user
like "$(cat on.trace)" "open.*nccl\.d/site\.conf" "the profile is read"
is "$(grep -c 'nccl\.d' idle.trace)" 0 "only by those who ask"
is "$(comm -13 slurm.touched on.touched | grep -c site.conf)" 0 "as the user"
# and a plugin that accesses a file as root is detected
other_plugin "$work/curious.so" "$srcdir/tests/cluster/hooks/curious.c" 2>err
ok $? "a plugin that looks at a file as root"
sed 's/^/# /' err
echo "optional $work/curious.so $work/home/own" >"$plugstack"
traced curious
like "$(comm -13 slurm.touched curious.touched)" '^(openat|access|stat|newfstatat|faccessat2?) WORK/home/own$' "is detected"
unharmed

# ---- slurmd, which loads every plugin when it starts
start () { # start NAME: trace slurmd while it starts
    pid=$(cat "${SLURM_CONF%/*}/run/slurmd-n1.pid" 2>/dev/null)
    if [ -n "$pid" ]; then
        kill "$pid"
        wait_for 300 sh -c "! kill -0 $pid"
    fi
    timeout -s TERM 30 strace -f -qq -s 4096 -e trace=file,network,process,%creds -e signal=none -o "$1.start" \
        slurmd -D -N n1 -f "$SLURM_CONF" >/dev/null 2>&1 </dev/null &
    wait_for 300 grep -q 'slurmd-n1\.pid' "$1.start"
    sleep 2
    cp "$1.start" "$1.begun" # without the calls of its shutdown
    kill $!
    python3 "$srcdir/tests/cluster/touched.py" "$1.begun" | sed "s|/tmp/dl-test\.[A-Za-z0-9#]*/|WORK/|g" | sort -u >"$1.touched"
    wait
}
: >"$plugstack"
start slurmd
start slurmd2
echo "$line" >"$plugstack"
start slurmd3
is "$(sort -u slurmd.touched slurmd2.touched | comm -13 - slurmd3.touched)" "openat WORK/dl.so" "slurmd itself touches dl.so and nothing else"
done_testing
