#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Where the plugin acts: site defaults, jobs submitted from a step, nodes without the plugin, the end of a step.
. "$srcdir/tests/lib.sh"
need_cluster
export PATH="$builddir/launcher:$PATH"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT OMP_NUM_THREADS KMP_AFFINITY OMP_PLACES GOMP_CPU_AFFINITY DL_MONITOR_DIR DL_DEBUG_DIR
gpus=0
[ "$(id -u)" -eq 0 ] && gpus=2
hosts_up defaults --nodes=2 --gpus=$gpus --plugin="$PLUGIN dl=$builddir/launcher/dl defualt=torch"
line="optional $PLUGIN dl=$builddir/launcher/dl"
ours='env | grep -cE "^(RANK|WORLD_SIZE|MASTER_|OMP_NUM_THREADS|(SLURM_)?DL_(ENV|BIND|NCCL|SECRET|POLICY|HOSTFILE))"; true'

# ---- a typo in plugstack.conf
like "$(cat "${SLURM_CONF%/*}"/log/slurmd-n1.log)" 'dl: plugstack.conf: defualt=torch: no such argument; ignored' "slurmd logs a typo in plugstack.conf"

# ---- defaults
echo "$line monitor_dir=$PWD default=auto bind=closest nccl=auto check=quick monitor=5" >"$plugstack"
is "$(timeout 300 srun -n2 sh -c "$ours" 2>&1)" "0
0" "defaults do not apply to steps without GPUs"
if [ $gpus -gt 0 ]; then
    echo "$line default=auto bind=closest" >"$plugstack"
    show='echo "${RANK-no} ${DL_BIND_SET+bound}"; : init_process_group'
    is "$(timeout 300 srun -N1 -n2 --gpus=2 sh -c "$show" 2>/dev/null | sort | tr '\n' ';')" "0 bound;1 bound;" "they apply to steps with GPUs"
    is "$(timeout 300 srun -N1 -n2 --gpus=2 --cpu-bind=none sh -c "$show" 2>/dev/null | sort | tr '\n' ';')" "0 ;1 ;" "--cpu-bind overrides the default"
    mkdir -m 1777 kept
    echo "$line monitor_dir=$PWD/kept monitor=1 debug=600" >"$plugstack"
    before=$(ls)
    is "$(timeout 300 srun -N1 -n2 --gpus=2 sleep 3 2>&1 | grep -v 'site.s default')" "" "a default of monitor= and debug= prints nothing"
    is "$(ls)" "$before" "it creates no folder here"
    is "$(ls "kept/$(id -u)" | sed 's/[0-9.]*$//' | sort -u | tr '\n' ' ')" "dl-monitor- " "and keeps its files in the site's folder"
    echo "$line default=auto bind=closest" >"$plugstack"
    is "$(timeout 300 srun -N1 -n1 --gpus=2 sh -c 'echo ${OMP_NUM_THREADS-none}' 2>/dev/null)" none "a default leaves OMP_NUM_THREADS alone"
    is "$(OMP_NUM_THREADS=7 timeout 300 srun -N1 -n1 --gpus=2 sh -c 'echo $OMP_NUM_THREADS' 2>/dev/null)" 7 "so is OMP_NUM_THREADS"
    timeout 300 srun -N1 -n2 --gpus=2 sh -c "$show" 2>err >/dev/null
    like "$(cat err)" "dl: this site's default is --dl=auto --dl-bind=closest; --dl=off or DL_DEFAULTS=off disables it" "one line says what a default did"
    is "$(grep -c "site's default" err)" 1 "not one line per rank"
    for off in "--dl=off" "--export=ALL,DL_DEFAULTS=off"; do
        timeout 300 sbatch -W -N1 -n2 --gpus=2 $off --output=out --wrap "srun sh -c '$ours; : init_process_group'" >/dev/null
        is "$(sort -u out)" 0 "sbatch $off turns them off in each step"
    done
    is "$(timeout 300 srun -N1 -n2 --gpus=2 --dl=off sh -c "$ours; : init_process_group" 2>&1)$(DL_DEFAULTS=off timeout 300 srun -N1 -n2 --gpus=2 sh -c "$ours; : init_process_group" 2>&1)" "0
00
0" "--dl=off or DL_DEFAULTS=off turns off every default"
    is "$(WORLD_SIZE=8 timeout 300 srun -N1 -n2 --gpus=2 sh -c 'echo ${RANK-no} $WORLD_SIZE; : init_process_group' 2>/dev/null | sort -u)" "no 8" "ranks that the user has set up keep their variables"
    is "$(timeout 300 srun -N1 -n2 --gpus=2 sh -c 'echo ${RANK-no}' 2>/dev/null | sort -u)" no "auto is for programs that train together"
    timeout 300 sbatch -W -N1 -n2 --gpus=2 --output=out --wrap "srun -n2 --gres=none sh -c '$ours'; srun -n2 sh -c '$show'" >/dev/null
    is "$(grep -vE "^(srun|dl):" out | sort | tr '\n' ';')" "0;0;0 bound;1 bound;" "in a job with GPUs a step without them is left alone"
    echo "$line when=partition:high default=auto when=partition:low deny=torch" >"$plugstack"
    is "$(timeout 300 srun -p high -N1 -n2 --gpus=2 sh -c 'echo ${RANK-no}' 2>/dev/null | sort | tr '\n' ' ')" "0 1 " "a default of a partition"
    is "$(timeout 300 srun -N1 -n2 --gpus=2 sh -c 'echo ${RANK-no}' | sort -u)" no "and of no other"
    is "$(timeout 300 srun -p low -n2 --dl=torch sh -c 'echo ${RANK-no}' 2>err | sort -u)" no "what a partition may not use"
    is "$(grep -c 'dl: --dl=torch: this site does not allow torch' err)" 1 "is reported once"
else
    skip "defaults in steps with GPUs" "device files are made by root only"
fi

# ---- jobs submitted from a step
echo "$line" >"$plugstack"
printf '#!/bin/sh\n#SBATCH -N2 -n2 --output=nested.out\nsrun sh -c "echo RANK=\\$RANK threads=\\$OMP_NUM_THREADS"\n' >nested.sh
timeout 300 srun -n1 --overlap --dl=torch --dl-bind=closest bash -c '(for v in ${!SLURM_*}; do [ $v = SLURM_CONF ] || unset $v; done; timeout 280 sbatch nested.sh)' >/dev/null
wait_for 300 sh -c '[ "$(grep -c RANK nested.out)" = 2 ]'
is "$(sort -u nested.out)" "RANK= threads=" "a job submitted from a step inherits nothing from it"

cat >outer.sh <<'END'
#!/bin/sh
#SBATCH -N1 -n2 --dl=torch --dl-bind=closest --output=outer.out
srun sh -c 'echo outer $RANK'
sbatch -W -n2 --output=inner.out --wrap 'env | grep -c _SLURM_SPANK_OPTION_dl_ ; srun sh -c "echo inner RANK=\$RANK \$DL_ENV_SET\$DL_BIND_SET"'
sbatch -W -n2 --dl=jax --output=other.out --wrap 'srun sh -c "echo other \$JAX_PROCESS_ID \$RANK"'
END
timeout 300 sbatch -W outer.sh >/dev/null
is "$(grep '^outer' outer.out | sort | tr '\n' ';')" "outer 0;outer 1;" "steps of a batch script have its options"
is "$(sort -u inner.out | tr '\n' ';')" "0;inner RANK=;" "a job submitted from the script has none of them"
is "$(grep '^other' other.out | sort | tr '\n' ';')" "other 0;other 1;" "only its own"

# ---- nodes without the plugin
sed "s|^PlugStackConfig=.*|PlugStackConfig=$work/client.conf|" "$SLURM_CONF" >"$work/slurm.conf"
echo "$line" >"$work/client.conf"
: >"$plugstack"
out=$(SLURM_CONF=$work/slurm.conf timeout 300 srun -N2 --dl=torch --dl-check sh -c 'echo "rank ${RANK-no}"' 2>err)
is "$(echo "$out" | sort -u)" "rank no" "nodes without the plugin"
like "$(cat err)" '^dl: no answer from n1,n2: dl.so is missing there' "srun names them"
echo "$line" >"$plugstack"
timeout 300 srun -N2 --dl=torch --dl-check true 2>err
is "$(grep -c 'no answer' err)" 0 "but not the others"

# ---- the end of a step
# one success is enough: on a busy machine, helpers may take longer than 2 s to start, or 200 ms to end
for _ in $(seq 100); do
    rm -rf dl-monitor-* dl-debug-*
    timeout 300 srun -N2 -n2 --dl-monitor=60 --dl-debug sleep 3 2>err
    ended=$(dl monitor --json | json '[r["ended"] for r in d["ranks"]]')
    [ "$ended" = "[True, True]" ] && [ "$(echo dl-debug-*)" = 'dl-debug-*' ] && grep -q ' nodes, [1-9]' err && break
done
like "$(cat err)" '^dl: 2 ranks on 2 nodes, [1-9]' "a step shorter than the interval is reported with its length"
is "$ended" "[True, True]" "the monitors saw its end"
is "$(ls -d dl-debug-* 2>/dev/null)" "" "and --dl-debug leaves nothing behind"
unharmed
done_testing
