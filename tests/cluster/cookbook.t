#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run the recipes of doc/cookbook.md that need Slurm, exactly as printed there.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/doc/cookbook.sh"
need_cluster
unset DL_DIR DL_FREEZE
cluster_up cookbook --nodes 2 --cpus 4 --gpus 4 --plugin "$PLUGIN"

recipe 7
cat >ddp.py <<'END'
import os
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
assert os.environ["MASTER_ADDR"] and os.environ["MASTER_PORT"] and int(os.environ["LOCAL_RANK"]) == rank % 2
if rank == 0:
    print(f"epoch 1: loss = {size}")
END
follow
like "$(dl show ddp)" 'best loss 4' "$title: two ranks on each of two nodes"

recipe 13
needs 1 lr.conf
follow

for r in 15 16; do
    recipe $r
    follow
done
is "$(dl show --json whole | json 'len(d["trials"])')" 8 "$title: all trials"
done_testing
