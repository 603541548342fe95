# tests/cluster/: run on a private Slurm cluster (contrib/minicluster); skipped without Slurm
cluster_tests = %D%/check.t %D%/jobs.t %D%/sweep.t %D%/allocation.t %D%/monitor.t %D%/debug.t %D%/meet.t %D%/elastichosts.t %D%/heal.t %D%/cancelled.t %D%/healdown.t %D%/healhost.t %D%/healjob.t %D%/slow.t %D%/hosts.t \
	%D%/spank.t %D%/hooks.t %D%/elasticrun.t %D%/asroot.t %D%/env.t %D%/minicluster.t %D%/hostile.t \
	%D%/cookbook.t %D%/beside.t %D%/boilerplate.t %D%/defaults.t %D%/elasticjob.t %D%/preempted.t %D%/oom.t %D%/flow.t %D%/reach.t %D%/follow.t %D%/site.t %D%/wire.t %D%/ports.t %D%/tensorflow.t %D%/job.t %D%/roles.t %D%/frameworks.t %D%/goodput.t
TESTS += $(cluster_tests)
EXTRA_PROGRAMS += %D%/paced
%C%_paced_LDADD = $(runtime_libs) -lm
tests/cluster/goodput.log: %D%/paced
tests/cluster/check.log tests/cluster/heal.log tests/cluster/healjob.log tests/cluster/monitor.log tests/cluster/site.log tests/cluster/slow.log: tests/fakes/nvml.la
if HAVE_CMOCKA
tests/cluster/elastichosts.log tests/cluster/elasticjob.log tests/cluster/elasticrun.log: tests/runtime/comm/elastic.t
endif
meet_needs = tests/runtime/comm/meet
if HAVE_MPI
meet_needs += tests/fakes/parts/slurmdl-mpi.la tests/fakes/mpi.la
if HAVE_CUDA
meet_needs += tests/runtime/comm/mpidevice tests/fakes/gpu/mpi/slurmdl-cuda.la tests/fakes/gpu/mpi/slurmdl-mpi.la
endif
endif
tests/cluster/meet.log: $(meet_needs)
tests/cluster/ports.log tests/cluster/wire.log: tests/runtime/comm/meet
