#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pass hostile options, variables and plugstack.conf through srun, sbatch and salloc to slurmstepd, under sanitizers.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster
command -v python3 >/dev/null || skip_all "no python3"
asan=$(${CC:-cc} -print-file-name=libasan.so)
[ -f "$asan" ] || skip_all "this compiler has no libasan.so"
variant "$work/dl.so" -fsanitize=address,undefined -fno-sanitize-recover=undefined 2>err
ok $? "the plugin with sanitizers"
sed 's/^/# /' err
other_plugin "$work/planted.so" "$srcdir/tests/fakes/planted_plugin.c" -fsanitize=address
ok $? "and one with a fault"
${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE -o forklock.so "$srcdir/tests/fakes/forklock.c" -ldl
ok $? "and what keeps a sanitizer's allocator whole over a fork"

# load the sanitizer into slurmstepd only: it does not support the forks of slurmd, which has threads
own_stepd
program bin/slurmstepd <<END
LD_PRELOAD="$work/forklock.so $asan" exec $stepd "\$@"
END
chmod +x bin/slurmd
export ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0:handle_abort=1:log_path=$work/asan.log" UBSAN_OPTIONS=print_stacktrace=1
PATH=$work/bin:$PATH cluster_up hostile --nodes=2
echo "optional $work/dl.so" >"$plugstack"
export LD_PRELOAD="$asan"

# ---- the bench detects a planted fault
cp "$plugstack" plain
echo "optional $work/planted.so" >>"$plugstack"
timeout 300 srun -n1 true >out 2>&1
like "$(cat asan.log* 2>/dev/null)" 'heap-buffer-overflow' "a planted overflow in slurmstepd is reported"
rm -f asan.log*
cp plain "$plugstack"
is "$(timeout 300 srun --dl=torch --dl-bind=closest --dl-nccl=auto -n1 sh -c 'echo $RANK' 2>/dev/null)" 0 "the plugin works under sanitizers"
is "$(cat asan.log* 2>/dev/null | grep -v 'does not come first')" "" "without a report"
forged=$(sed "s|^PlugStackConfig=.*|PlugStackConfig=$work/none.conf|" "$SLURM_CONF" >c.conf; : >none.conf
    SLURM_CONF=$work/c.conf _SLURM_SPANK_OPTION_dl_dl=torch timeout 300 srun -n1 sh -c 'echo $RANK')
is "$forged" 0 "a forged option does reach the node"

cases=${DL_HOSTILE_CASES:-$(often 40 5000)}
seed=${DL_TEST_SEED:-1}
timeout $((1200 + cases)) python3 "$srcdir/tests/cluster/hostile.py" "$cases" "$seed" "$work/dl.so" >out 2>&1
ok $? "$cases hostile cases of seed $seed"
sed 's/^/# /' out
unset LD_PRELOAD
unharmed
done_testing
