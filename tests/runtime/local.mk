# tests/runtime/: the tests of comm/ run each rank as a process (comm/world.c)
if HAVE_CMOCKA
rank_units = %D%/rank_environment.t %D%/layout.t %D%/topology.t %D%/nccl.t
runtime_units = %D%/comm/commfail.t %D%/comm/elasticjoins.t %D%/comm/elastic.t %D%/comm/handshake.t \
	%D%/comm/bootstrap.t %D%/comm/stalls.t %D%/comm/elasticwait.t %D%/disks.t \
	%D%/comm/node.t %D%/comm/comm.t %D%/records.t %D%/metrics.t %D%/checkpoint.t %D%/run.t %D%/shards.t \
	%D%/saves.t %D%/slabs.t %D%/ring.t %D%/reads.t %D%/damage.t %D%/nameindex.t %D%/h5image.t %D%/agree.t %D%/errors.t %D%/process_id.t %D%/inside.t \
	%D%/comm/rankname.t %D%/comm/secret.t %D%/comm/reduce.t %D%/comm/reduce_generic.t %D%/comm/engine.t \
	%D%/comm/gathers.t %D%/comm/tensors.t %D%/comm/interface.t
if HAVE_NCCL
device_units = %D%/comm/ncclcomm.t %D%/comm/device.t
endif
EXTRA_PROGRAMS += $(rank_units) $(runtime_units) $(device_units)
$(rank_units): LDADD = runtime/librank.la $(CMOCKA_LIBS)
$(rank_units): runtime/librank.la
EXTRA_LTLIBRARIES += %D%/libtest.la
%C%_libtest_la_SOURCES = %D%/comm/collect.c %D%/comm/elasticcrowd.c %D%/comm/elasticrank.c %D%/comm/world.c
runtime_ldadd = %D%/libtest.la $(runtime_libs)
$(runtime_units): LDADD = $(runtime_ldadd) $(CMOCKA_LIBS) -lm -ldl
$(runtime_units): %D%/libtest.la $(runtime_archives)
%C%_checkpoint_t_CPPFLAGS = $(AM_CPPFLAGS) -DBACKEND_DIR='"$(abs_builddir)/tests/fakes/device/.libs"'
%C%_errors_t_CPPFLAGS = $(AM_CPPFLAGS) -DSOURCES='"$(abs_srcdir)"'
%C%_topology_t_CPPFLAGS = $(AM_CPPFLAGS) -DMACHINES='"$(abs_srcdir)/%D%/topology"'
%C%_comm_elasticjoins_t_SOURCES = %D%/comm/elastic.c
%C%_comm_interface_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getifaddrs,--wrap=freeifaddrs
%C%_comm_rankname_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getaddrinfo
# the generic kernels, which this processor would not use
%C%_comm_reduce_generic_t_SOURCES = %D%/comm/reduce.c runtime/comm/reduce/convert.c runtime/comm/reduce/narrow.c \
	runtime/comm/reduce/plain.c runtime/comm/reduce/reduce.c
%C%_comm_reduce_generic_t_CPPFLAGS = $(AM_CPPFLAGS) -DKERNEL_GENERIC
%C%_comm_ncclcomm_t_CPPFLAGS = $(AM_CPPFLAGS) -DBACKEND_DIR='"$(abs_builddir)/tests/fakes/host/.libs"'
%C%_comm_ncclcomm_t_LDADD = $(runtime_ldadd) $(CMOCKA_LIBS) -lm -ldl
%C%_comm_device_t_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DGPU_DIR='"$(abs_builddir)/tests/fakes/gpu"'
%C%_comm_device_t_LDADD = $(runtime_ldadd) tests/fakes/libcudart.la $(CMOCKA_LIBS) -lm
tests/runtime/checkpoint.log: tests/fakes/device/slurmdl-cuda.la
tests/runtime/comm/ncclcomm.log: tests/fakes/host/slurmdl-cuda.la tests/fakes/host/slurmdl-nccl.la
tests/runtime/comm/device.log: tests/fakes/gpu/both/slurmdl-cuda.la tests/fakes/gpu/both/slurmdl-nccl.la \
	tests/fakes/gpu/cuda/slurmdl-cuda.la
endif
runtime_tests = %D%/save.t %D%/crash.t $(runtime_units) $(device_units) $(rank_units) %D%/languages.t %D%/exports.t
TESTS += $(runtime_tests)

# programs that the scripts run
EXTRA_PROGRAMS += %D%/writer %D%/machine %D%/comm/meet
%C%_writer_LDADD = $(runtime_libs)
%C%_machine_LDADD =
%C%_comm_meet_SOURCES = %D%/comm/meet.c %D%/comm/collect.c
%C%_comm_meet_CPPFLAGS = $(AM_CPPFLAGS)
%C%_comm_meet_LDADD = $(runtime_libs) -lm
tests/runtime/crash.log: %D%/writer tests/fakes/trace.la tests/faults/shim.la
tests/runtime/save.log: %D%/writer tests/faults/shim.la
if HAVE_MPI
if HAVE_CUDA
EXTRA_PROGRAMS += %D%/comm/mpidevice
%C%_comm_mpidevice_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_comm_mpidevice_LDADD = $(runtime_libs) tests/fakes/libcudart.la
endif
endif
