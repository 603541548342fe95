# SPDX-License-Identifier: Apache-2.0
# two ranks of torch.distributed: sharded checkpoints, agreement on preemption, and collectives on objects
import pathlib
import sys
import tempfile
import time

import torch.distributed as dist

import determined as det

dist.init_process_group("gloo")
context = det.core.DistributedContext.from_torch_distributed()
info = det.get_cluster_info()
with det.core.init(distributed=context) as core:
    here = core.distributed
    assert (here.rank, here.size, here.local_size) == (dist.get_rank(), 2, 2)
    assert here.allgather(here.rank) == [0, 1] and here.broadcast_local("a" if here.rank == 0 else "b") == "a"
    assert here.gather(here.rank) == ([0, 1] if here.rank == 0 else None)
    here.barrier()
    try:
        here.allgather(here)
        raise AssertionError("an object that has to be pickled")
    except TypeError as error:
        assert "trust=True" in str(error), error
    batch = 0
    if info.latest_checkpoint is not None:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            batch = int((path / f"part{here.rank}").read_text())
            assert sorted(p.name for p in path.iterdir()) == ["metadata.json", "part0", "part1"]
        assert core.checkpoint.get_metadata(info.latest_checkpoint)["ranks"] == {"0": 1, "1": 1}
        print(f"rank {here.rank} from {batch}", flush=True)
    for op in core.searcher.operations():
        while batch < op.length:
            batch += 1
            time.sleep(float(sys.argv[1]))
            about = {"steps_completed": batch, "ranks": {str(here.rank): 1}}
            with core.checkpoint.store_path(about, shard=True) as (path, _):
                (path / f"part{here.rank}").write_text(str(batch))
            if here.rank == 0:
                core.train.report_validation_metrics(batch, {"loss": 1 / batch})
                print(f"batch {batch}", flush=True)
            if core.preempt.should_preempt():
                sys.exit()
        if here.rank == 0:
            op.report_completed(1 / batch)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, f"up{here.rank}").write_text("x")
        pathlib.Path(folder, "same").write_text("y")
        pathlib.Path(folder, "no").write_text("z")
        last = core.checkpoint.upload(folder, {"steps_completed": 1000}, shard=True, selector=lambda name: name != "no")
        core.checkpoint.download(last, folder + "/back", selector=lambda name: name.startswith("up"))
        here.barrier()
        found = sorted(p.name for p in pathlib.Path(folder, "back").iterdir()) if here.rank == 0 else None
        assert found in (None, ["up0", "up1"]), found
        pathlib.Path(folder, "same").write_text(str(here.rank))
        try:
            core.checkpoint.upload(folder, {"steps_completed": 1001}, shard=True)
            raise AssertionError("a conflict")
        except RuntimeError as error:
            assert "same" in str(error), error
