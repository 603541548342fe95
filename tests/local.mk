# A unit test is a cmocka program tests/NAME.t made from tests/NAME.c, a test
# of a program is a shell script tests/NAME.t; both speak TAP.
TEST_EXTENSIONS = .t
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	PATH='$(abs_builddir)/launcher':"$$PATH"; export PATH; \
	srcdir='$(abs_srcdir)'; export srcdir; builddir='$(abs_builddir)'; export builddir; \
	PLUGIN='$(abs_builddir)/spank/.libs/dl.so'; export PLUGIN; \
	CC='$(CC)'; export CC; CFLAGS='$(CFLAGS)'; export CFLAGS;
T_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(T_LOG_DRIVER)

# searcher/
if HAVE_CMOCKA
searcher_tests = %D%/ladder.t %D%/space.t %D%/grid.t %D%/asha.t %D%/brackets.t \
	%D%/bayes.t %D%/model.t %D%/searcher.t %D%/constraint.t %D%/pareto.t %D%/ehvi.t %D%/cmaes.t \
	%D%/tree.t %D%/values.t %D%/points.t %D%/halving.t %D%/stop.t \
	%D%/population.t %D%/objectives.t %D%/events.t %D%/extend.t %D%/rules.t
check_PROGRAMS += $(searcher_tests)
TESTS += $(searcher_tests)
sweep = %D%/sweep.h %D%/sweep.c %D%/params.h
searcher_ldadd = searcher/libsearcher.la $(CMOCKA_LIBS) -lm
%C%_ladder_t_SOURCES = %D%/ladder.c
%C%_ladder_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_ladder_t_LDADD = $(searcher_ldadd)
%C%_space_t_SOURCES = %D%/space.c $(sweep)
%C%_space_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_space_t_LDADD = $(searcher_ldadd)
%C%_constraint_t_SOURCES = %D%/constraint.c
%C%_constraint_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_constraint_t_LDADD = $(searcher_ldadd)
%C%_cmaes_t_SOURCES = %D%/cmaes.c
%C%_cmaes_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_cmaes_t_LDADD = $(searcher_ldadd)
%C%_pareto_t_SOURCES = %D%/pareto.c %D%/fronts.h
%C%_pareto_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_pareto_t_LDADD = $(searcher_ldadd)
%C%_ehvi_t_SOURCES = %D%/ehvi.c %D%/fronts.h
%C%_ehvi_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_ehvi_t_LDADD = $(searcher_ldadd)
%C%_grid_t_SOURCES = %D%/grid.c $(sweep)
%C%_grid_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_grid_t_LDADD = $(searcher_ldadd)
%C%_asha_t_SOURCES = %D%/asha.c $(sweep)
%C%_asha_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_asha_t_LDADD = $(searcher_ldadd)
%C%_brackets_t_SOURCES = %D%/brackets.c $(sweep)
%C%_brackets_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_brackets_t_LDADD = $(searcher_ldadd)
%C%_bayes_t_SOURCES = %D%/bayes.c %D%/params.h %D%/search.h
%C%_bayes_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_bayes_t_LDADD = $(searcher_ldadd)
%C%_model_t_SOURCES = %D%/model.c %D%/params.h %D%/search.h
%C%_model_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_model_t_LDADD = $(searcher_ldadd)
%C%_searcher_t_SOURCES = %D%/searcher.c $(sweep)
%C%_searcher_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_searcher_t_LDADD = $(searcher_ldadd)
%C%_tree_t_SOURCES = %D%/tree.c $(sweep)
%C%_tree_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_tree_t_LDADD = $(searcher_ldadd)
%C%_values_t_SOURCES = %D%/values.c $(sweep)
%C%_values_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_values_t_LDADD = $(searcher_ldadd)
%C%_points_t_SOURCES = %D%/points.c $(sweep)
%C%_points_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_points_t_LDADD = $(searcher_ldadd)
%C%_halving_t_SOURCES = %D%/halving.c $(sweep)
%C%_halving_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_halving_t_LDADD = $(searcher_ldadd)
%C%_stop_t_SOURCES = %D%/stop.c $(sweep)
%C%_stop_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_stop_t_LDADD = $(searcher_ldadd)
%C%_population_t_SOURCES = %D%/population.c $(sweep)
%C%_population_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_population_t_LDADD = $(searcher_ldadd)
%C%_objectives_t_SOURCES = %D%/objectives.c $(sweep)
%C%_objectives_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_objectives_t_LDADD = $(searcher_ldadd)
%C%_rules_t_SOURCES = %D%/rules.c $(sweep)
%C%_rules_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_rules_t_LDADD = $(searcher_ldadd)
%C%_events_t_SOURCES = %D%/events.c $(sweep)
%C%_events_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_events_t_LDADD = $(searcher_ldadd)
%C%_extend_t_SOURCES = %D%/extend.c %D%/extend.h $(sweep)
%C%_extend_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_extend_t_LDADD = $(searcher_ldadd)
endif
dist_check_SCRIPTS += %D%/pure.t %D%/folders.t
EXTRA_PROGRAMS += %D%/bench/searcher
%C%_bench_searcher_SOURCES = %D%/bench/searcher.c
%C%_bench_searcher_LDADD = searcher/libsearcher.la -lm
EXTRA_PROGRAMS += %D%/bench/decision
%C%_bench_decision_SOURCES = %D%/bench/decision.c
%C%_bench_decision_LDADD = searcher/libsearcher.la -lm
EXTRA_PROGRAMS += %D%/decisions
%C%_decisions_SOURCES = %D%/decisions.c
%C%_decisions_LDADD = searcher/libsearcher.la -lm
EXTRA_PROGRAMS += %D%/bench/fidelity
%C%_bench_fidelity_SOURCES = %D%/bench/fidelity.c
%C%_bench_fidelity_LDADD = searcher/libsearcher.la -lm
EXTRA_DIST += %D%/bench/curves.py %D%/bench/conditional.py %D%/bench/problems.py %D%/bench/heldout.py
CLEANFILES += %D%/bench/searcher$(EXEEXT) %D%/bench/decision$(EXEEXT) \
	%D%/bench/fidelity$(EXEEXT) %D%/decisions$(EXEEXT)

# runtime/
check_PROGRAMS += %D%/writer
%C%_writer_SOURCES = %D%/writer.c
%C%_writer_LDADD = runtime/libruntime.la
dist_check_SCRIPTS += %D%/crash.t %D%/languages.t %D%/save.t
EXTRA_DIST += %D%/crash.py %D%/boundaries.py %D%/save.py %D%/rankfaults.py \
	%D%/old/checkpoint-1.h5 %D%/old/checkpoint-2.h5 %D%/old/metrics-1.h5 %D%/old/metrics-2.h5
EXTRA_PROGRAMS += %D%/bench/metrics
%C%_bench_metrics_SOURCES = %D%/bench/metrics.c
%C%_bench_metrics_LDADD = runtime/libslurmdl.la
CLEANFILES += %D%/bench/metrics$(EXEEXT)
EXTRA_DIST += %D%/bench/metrics.py
check_LTLIBRARIES += %D%/trace.la
%C%_trace_la_SOURCES = %D%/trace.c
%C%_trace_la_LDFLAGS = -module -avoid-version -shared -rpath /none
if HAVE_CMOCKA
check_LTLIBRARIES += %D%/slurmdl-cuda.la
%C%_slurmdl_cuda_la_SOURCES = %D%/fakedevice.c
%C%_slurmdl_cuda_la_LDFLAGS = -module -avoid-version -shared -rpath /none
runtime_tests = %D%/metrics.t %D%/checkpoint.t %D%/records.t %D%/shards.t %D%/saves.t %D%/slabs.t %D%/reads.t %D%/damage.t %D%/old.t %D%/agree.t
check_PROGRAMS += $(runtime_tests)
TESTS += $(runtime_tests)
%C%_metrics_t_SOURCES = %D%/metrics.c %D%/folder.h
%C%_metrics_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_metrics_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_records_t_SOURCES = %D%/records.c %D%/folder.h
%C%_records_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_records_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
%C%_checkpoint_t_SOURCES = %D%/checkpoint.c %D%/folder.h
%C%_checkpoint_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HDF5_CFLAGS) -DBACKEND_DIR='"$(abs_builddir)/%D%/.libs"'
%C%_checkpoint_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -ldl
%C%_saves_t_SOURCES = %D%/saves.c %D%/counted.h %D%/folder.h
%C%_saves_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_saves_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_slabs_t_SOURCES = %D%/slabs.c %D%/plain.h
%C%_slabs_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_slabs_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_reads_t_SOURCES = %D%/reads.c %D%/folder.h %D%/ranks.h
%C%_reads_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_reads_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_damage_t_SOURCES = %D%/damage.c %D%/folder.h %D%/ranks.h
%C%_damage_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_damage_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_old_t_SOURCES = %D%/old.c
%C%_old_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_old_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_agree_t_SOURCES = %D%/agree.c %D%/folder.h %D%/ranks.h
%C%_agree_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_agree_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_shards_t_SOURCES = %D%/shards.c %D%/counted.h %D%/folder.h %D%/plain.h %D%/ranks.h
%C%_shards_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_shards_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
endif

# runtime/comm/: each test runs its ranks by world.c
EXTRA_DIST += %D%/world.c %D%/world.h
check_PROGRAMS += %D%/meet
%C%_meet_SOURCES = %D%/collect.c %D%/collect.h %D%/meet.c
%C%_meet_LDADD = runtime/libruntime.la -lm
EXTRA_DIST += %D%/allonhost.c %D%/fakecudart.c %D%/fakecudart.h %D%/fakenccl.c
# as if there were too many elements for an int
if HAVE_MPI
check_LTLIBRARIES += %D%/parts/slurmdl-mpi.la
%C%_parts_slurmdl_mpi_la_SOURCES = runtime/comm/mpi/mpi.c runtime/comm/mpi/calls.c runtime/comm/mpi/module.h runtime/comm/mpi/ops.c runtime/comm/mpi/trade.c \
	runtime/clock.c runtime/error.c
%C%_parts_slurmdl_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) -DMPI_PART=100
%C%_parts_slurmdl_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_parts_slurmdl_mpi_la_LIBADD = $(MPI_LIBS) -ldl -lpthread
%C%_parts_slurmdl_mpi_la_LDFLAGS = -module -avoid-version -shared -rpath /none
endif
if HAVE_MPI
check_LTLIBRARIES += %D%/fakempi.la
%C%_fakempi_la_SOURCES = %D%/fakempi.c
%C%_fakempi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_fakempi_la_LIBADD = $(MPI_LIBS)
%C%_fakempi_la_LDFLAGS = -module -avoid-version -shared -rpath /none
if HAVE_CUDA
check_PROGRAMS += %D%/mpidevice
%C%_mpidevice_SOURCES = %D%/fakecudart.h %D%/mpidevice.c
%C%_mpidevice_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_mpidevice_LDADD = runtime/libruntime.la %D%/libfakecudart.la
check_LTLIBRARIES += %D%/gpu/mpi/slurmdl-cuda.la %D%/gpu/mpi/slurmdl-mpi.la
%C%_gpu_mpi_slurmdl_cuda_la_SOURCES = runtime/cuda.c
%C%_gpu_mpi_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_mpi_slurmdl_cuda_la_LIBADD = %D%/libfakecudart.la
%C%_gpu_mpi_slurmdl_cuda_la_LDFLAGS = -module -avoid-version -shared -rpath /none
%C%_gpu_mpi_slurmdl_mpi_la_SOURCES = $(%C%_parts_slurmdl_mpi_la_SOURCES)
%C%_gpu_mpi_slurmdl_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) -DMPI_PART=1000
%C%_gpu_mpi_slurmdl_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_gpu_mpi_slurmdl_mpi_la_LIBADD = $(MPI_LIBS) -ldl -lpthread
%C%_gpu_mpi_slurmdl_mpi_la_LDFLAGS = -module -avoid-version -shared -rpath /none
endif
endif
if HAVE_CUDA
check_LTLIBRARIES += %D%/libfakecudart.la
%C%_libfakecudart_la_SOURCES = %D%/fakecudart.c %D%/fakecudart.h
%C%_libfakecudart_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_libfakecudart_la_LDFLAGS = -avoid-version -shared -rpath /none
endif
if HAVE_NCCL
if HAVE_CMOCKA
check_PROGRAMS += %D%/ncclcomm.t
TESTS += %D%/ncclcomm.t
%C%_ncclcomm_t_SOURCES = %D%/collect.c %D%/collect.h %D%/ncclcomm.c %D%/world.c %D%/world.h
%C%_ncclcomm_t_CPPFLAGS = $(AM_CPPFLAGS) -DBACKEND_DIR='"$(abs_builddir)/%D%/fakes/.libs"'
%C%_ncclcomm_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_ncclcomm_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm -ldl
check_PROGRAMS += %D%/device.t
TESTS += %D%/device.t
%C%_device_t_SOURCES = %D%/device.c %D%/fakecudart.h %D%/named.h %D%/ondevice.h %D%/world.c %D%/world.h
%C%_device_t_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DGPU_DIR='"$(abs_builddir)/%D%/gpu"'
%C%_device_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_device_t_LDADD = runtime/libruntime.la %D%/libfakecudart.la $(CMOCKA_LIBS) -lm
# folders of modules as the library looks for them
check_LTLIBRARIES += %D%/gpu/both/slurmdl-cuda.la %D%/gpu/both/slurmdl-nccl.la %D%/gpu/cuda/slurmdl-cuda.la
gpu_cuda_sources = runtime/cuda.c
gpu_flags = -module -avoid-version -shared -rpath /none
%C%_gpu_both_slurmdl_cuda_la_SOURCES = $(gpu_cuda_sources)
%C%_gpu_both_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_both_slurmdl_cuda_la_LIBADD = %D%/libfakecudart.la
%C%_gpu_both_slurmdl_cuda_la_LDFLAGS = $(gpu_flags)
%C%_gpu_cuda_slurmdl_cuda_la_SOURCES = $(gpu_cuda_sources)
%C%_gpu_cuda_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_cuda_slurmdl_cuda_la_LIBADD = %D%/libfakecudart.la
%C%_gpu_cuda_slurmdl_cuda_la_LDFLAGS = $(gpu_flags)
%C%_gpu_both_slurmdl_nccl_la_SOURCES = $(%C%_fakes_slurmdl_nccl_la_SOURCES)
%C%_gpu_both_slurmdl_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_both_slurmdl_nccl_la_LIBADD = runtime/libruntime.la %D%/libfakecudart.la
%C%_gpu_both_slurmdl_nccl_la_LDFLAGS = $(gpu_flags)
check_LTLIBRARIES += %D%/fakes/slurmdl-cuda.la %D%/fakes/slurmdl-nccl.la
%C%_fakes_slurmdl_cuda_la_SOURCES = %D%/allonhost.c
%C%_fakes_slurmdl_cuda_la_LDFLAGS = -module -avoid-version -shared -rpath /none
%C%_fakes_slurmdl_nccl_la_SOURCES = %D%/fakenccl.c runtime/comm/nccl/nccl.c runtime/comm/nccl/calls.c runtime/comm/nccl/module.h runtime/comm/nccl/queue.c
%C%_fakes_slurmdl_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_fakes_slurmdl_nccl_la_LIBADD = runtime/libruntime.la %D%/libfakecudart.la
%C%_fakes_slurmdl_nccl_la_LDFLAGS = -module -avoid-version -shared -rpath /none
endif
endif
if HAVE_CMOCKA
comm_tests = %D%/boot.t %D%/bootname.t
comm_tests += %D%/reduce.t %D%/reduce_generic.t %D%/node.t
comm_tests += %D%/comm.t %D%/commfail.t
comm_tests += %D%/engine.t %D%/stalls.t %D%/tensors.t
comm_tests += %D%/elastic.t
check_PROGRAMS += $(comm_tests)
TESTS += $(comm_tests)
%C%_stalls_t_SOURCES = %D%/stalls.c %D%/named.h %D%/world.c %D%/world.h
%C%_stalls_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_stalls_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
%C%_tensors_t_SOURCES = %D%/tensors.c %D%/named.h %D%/world.c %D%/world.h
%C%_tensors_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_tensors_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
%C%_engine_t_SOURCES = %D%/engine.c %D%/named.h %D%/world.c %D%/world.h
%C%_engine_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_engine_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
%C%_comm_t_SOURCES = %D%/collect.c %D%/collect.h %D%/comm.c %D%/world.c %D%/world.h
%C%_comm_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_commfail_t_SOURCES = %D%/commfail.c %D%/world.c %D%/world.h
%C%_commfail_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_commfail_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_comm_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
%C%_elastic_t_SOURCES = %D%/elastic.c %D%/elasticcrowd.c %D%/elasticcrowd.h %D%/elasticrank.c %D%/elasticrank.h %D%/folder.h
%C%_elastic_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_elastic_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_boot_t_SOURCES = %D%/boot.c %D%/world.c %D%/world.h
%C%_boot_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_boot_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_bootname_t_SOURCES = %D%/bootname.c %D%/world.c %D%/world.h
%C%_bootname_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_bootname_t_LDFLAGS = -Wl,--wrap=getaddrinfo
%C%_bootname_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
%C%_node_t_SOURCES = %D%/node.c %D%/world.c %D%/world.h
%C%_node_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_node_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)
reduce_test = %D%/format.c %D%/format.h %D%/pairs.c %D%/pairs.h %D%/reduce.c
%C%_reduce_t_SOURCES = $(reduce_test)
%C%_reduce_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_reduce_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
# as on processors without what gcc would take on this one
%C%_reduce_generic_t_SOURCES = $(reduce_test) runtime/comm/reduce/convert.c runtime/comm/reduce/narrow.c runtime/comm/reduce/plain.c \
	runtime/comm/reduce/reduce.c
%C%_reduce_generic_t_CPPFLAGS = $(AM_CPPFLAGS) -DKERNEL_GENERIC
%C%_reduce_generic_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_reduce_generic_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
endif

EXTRA_PROGRAMS += %D%/bench/gradients
%C%_bench_gradients_SOURCES = %D%/bench/gradients.c
%C%_bench_gradients_LDADD = runtime/libslurmdl.la
CLEANFILES += %D%/bench/gradients$(EXEEXT)
EXTRA_DIST += %D%/bench/gradients.py %D%/bench/hvdstart.py %D%/bench/scaling.py
EXTRA_PROGRAMS += %D%/bench/comm
%C%_bench_comm_SOURCES = %D%/bench/comm.c
%C%_bench_comm_LDADD = runtime/libslurmdl.la
CLEANFILES += %D%/bench/comm$(EXEEXT)
EXTRA_DIST += %D%/bench/comm.py
EXTRA_PROGRAMS += %D%/bench/checkpoint
%C%_bench_checkpoint_SOURCES = %D%/bench/checkpoint.c
%C%_bench_checkpoint_LDADD = runtime/libruntime.la
CLEANFILES += %D%/bench/checkpoint$(EXEEXT)
EXTRA_DIST += %D%/bench/checkpoint.py

# the parameter server
if HAVE_CMOCKA
check_PROGRAMS += %D%/ps.t %D%/pslosses.t %D%/pssaves.t
TESTS += %D%/ps.t %D%/pslosses.t %D%/pssaves.t
%C%_ps_t_SOURCES = %D%/ps.c %D%/psgroup.c %D%/psgroup.h %D%/folder.h %D%/ranks.h
%C%_ps_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_ps_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
%C%_pslosses_t_SOURCES = %D%/pslosses.c %D%/psgroup.c %D%/psgroup.h %D%/folder.h %D%/ranks.h
%C%_pslosses_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_pslosses_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
%C%_pssaves_t_SOURCES = %D%/pssaves.c %D%/psgroup.c %D%/psgroup.h %D%/folder.h %D%/ranks.h
%C%_pssaves_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_pssaves_t_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm
endif
check_PROGRAMS += %D%/pswork
%C%_pswork_SOURCES = %D%/pswork.c
%C%_pswork_LDADD = runtime/libslurmdl.la
EXTRA_PROGRAMS += %D%/bench/ps
%C%_bench_ps_SOURCES = %D%/bench/ps.c
%C%_bench_ps_LDADD = runtime/libruntime.la -lm
CLEANFILES += %D%/bench/ps$(EXEEXT)
EXTRA_PROGRAMS += %D%/bench/pssave
%C%_bench_pssave_SOURCES = %D%/bench/pssave.c
%C%_bench_pssave_LDADD = runtime/libruntime.la
CLEANFILES += %D%/bench/pssave$(EXEEXT)

# spank/
if HAVE_CMOCKA
check_PROGRAMS += %D%/rankenv.t %D%/layout.t
TESTS += %D%/rankenv.t %D%/layout.t
%C%_layout_t_SOURCES = %D%/layout.c %D%/steps.h
%C%_layout_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_layout_t_LDADD = runtime/librankenv.la $(CMOCKA_LIBS)
%C%_rankenv_t_SOURCES = %D%/rankenv.c %D%/steps.h
%C%_rankenv_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_rankenv_t_LDADD = runtime/librankenv.la $(CMOCKA_LIBS)
check_PROGRAMS += %D%/topology.t
TESTS += %D%/topology.t
%C%_topology_t_SOURCES = %D%/topology.c %D%/folder.h %D%/machine.h
%C%_topology_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) -DMACHINES='"$(abs_srcdir)/%D%/topology"'
%C%_topology_t_LDADD = runtime/librankenv.la $(CMOCKA_LIBS)
check_PROGRAMS += %D%/nccl.t
TESTS += %D%/nccl.t
%C%_nccl_t_SOURCES = %D%/nccl.c %D%/fabric.h
%C%_nccl_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_nccl_t_LDADD = runtime/librankenv.la $(CMOCKA_LIBS)
EXTRA_DIST += %D%/fabric/efa %D%/fabric/infiniband %D%/fabric/no-manager %D%/fabric/none \
	%D%/fabric/roce-bond %D%/fabric/slingshot %D%/fabric/tcp-overlay
endif
EXTRA_DIST += %D%/topology/dgx-a100 %D%/topology/dgx-h100 %D%/topology/hgx-h100 \
	%D%/topology/laptop %D%/topology/mi250x %D%/topology/no-numa %D%/topology/pcie-4gpu
EXTRA_PROGRAMS += %D%/bench/topology
%C%_bench_topology_SOURCES = %D%/bench/topology.c
%C%_bench_topology_LDADD = runtime/librankenv.la
CLEANFILES += %D%/bench/topology$(EXEEXT)
if HAVE_SLURM
if HAVE_CMOCKA
check_PROGRAMS += %D%/bounds.t
TESTS += %D%/bounds.t
%C%_bounds_t_SOURCES = %D%/bounds.c spank/policy.c
%C%_bounds_t_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"' -DBINDIR='"$(bindir)"'
%C%_bounds_t_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_bounds_t_LDADD = runtime/librankenv.la $(CMOCKA_LIBS)
endif
check_PROGRAMS += %D%/machine
%C%_machine_SOURCES = %D%/machine.c %D%/machine.h
check_LTLIBRARIES += %D%/libnvidia-ml.la
%C%_libnvidia_ml_la_SOURCES = %D%/fakegpus.c
%C%_libnvidia_ml_la_LDFLAGS = -rpath /none -version-info 1:0:0
check_PROGRAMS += %D%/fakespank
%C%_fakespank_SOURCES = %D%/fakespank.c
%C%_fakespank_LDFLAGS = -export-dynamic
%C%_fakespank_LDADD = runtime/librankenv.la -ldl
endif
dist_check_SCRIPTS += %D%/exports.t %D%/plugin.t %D%/policy.t %D%/bind.t %D%/pscluster.t %D%/pshosts.t %D%/spank.t \
	%D%/boilerplate.t %D%/beside.t %D%/asroot.t %D%/hooks.t %D%/hostile.t
EXTRA_DIST += %D%/variant.sh %D%/hostile.py %D%/planted.c %D%/forklock.c %D%/touched.py \
	%D%/hooks/container.c %D%/hooks/curious.c %D%/hooks/failing.c %D%/hooks/helper.c %D%/hooks/poor.h \
	%D%/bench/launch.py %D%/bench/bind.py
dist_check_SCRIPTS += %D%/env.t %D%/doctor.t %D%/monitor.t %D%/debug.t
EXTRA_DIST += %D%/env.py %D%/doctor/config %D%/doctor/etc

# launcher/
EXTRA_DIST += %D%/lib.sh %D%/session.py %D%/fuzz.py %D%/horovod.py
dist_check_SCRIPTS += %D%/horovod.t %D%/docs.t %D%/options.t %D%/config.t %D%/cli.t %D%/server.t %D%/fuzz.t %D%/local.t \
	%D%/outcomes.t %D%/custom.t %D%/export.t \
	%D%/executor.t %D%/ckpt.t
EXTRA_DIST += %D%/results.py %D%/exchange.py %D%/manifest.py
EXTRA_PROGRAMS += %D%/bench/results
%C%_bench_results_SOURCES = %D%/bench/results.c %D%/made.h
%C%_bench_results_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_bench_results_LDADD = launcher/liblauncher.la
EXTRA_PROGRAMS += %D%/bench/attach
%C%_bench_attach_SOURCES = %D%/bench/attach.c
%C%_bench_attach_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_bench_attach_LDADD = launcher/liblauncher.la
EXTRA_PROGRAMS += %D%/bench/herd
%C%_bench_herd_SOURCES = %D%/bench/herd.c
%C%_bench_herd_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_bench_herd_LDADD = launcher/liblauncher.la -ldl
CLEANFILES += %D%/bench/results$(EXEEXT) %D%/bench/attach$(EXEEXT) %D%/bench/herd$(EXEEXT)
EXTRA_DIST += %D%/bench/monitor.py
EXTRA_DIST += %D%/bench/peers.py %D%/bench/peer_runs.py %D%/bench/peers_cluster.py %D%/bench/herd.py \
	%D%/bench/limits.sh
if HAVE_CMOCKA
launcher_tests = %D%/log.t %D%/event.t %D%/pattern.t %D%/replay.t %D%/gc.t %D%/results.t \
	%D%/verdict.t %D%/ranks.t %D%/advise.t %D%/stacks.t %D%/progress.t
check_PROGRAMS += $(launcher_tests)
TESTS += $(launcher_tests)
launcher_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
launcher_ldadd = launcher/liblauncher.la $(CMOCKA_LIBS)
%C%_log_t_SOURCES = %D%/log.c %D%/folder.h
%C%_log_t_CFLAGS = $(launcher_cflags)
%C%_log_t_LDADD = $(launcher_ldadd)
%C%_event_t_SOURCES = %D%/event.c
%C%_event_t_CFLAGS = $(launcher_cflags)
%C%_event_t_LDADD = $(launcher_ldadd)
%C%_pattern_t_SOURCES = %D%/pattern.c
%C%_pattern_t_CFLAGS = $(launcher_cflags)
%C%_pattern_t_LDADD = $(launcher_ldadd)
%C%_replay_t_SOURCES = %D%/replay.c %D%/folder.h
%C%_replay_t_CFLAGS = $(launcher_cflags)
%C%_replay_t_LDADD = $(launcher_ldadd)
%C%_gc_t_SOURCES = %D%/gc.c %D%/folder.h %D%/made.h
%C%_gc_t_CFLAGS = $(launcher_cflags)
%C%_gc_t_LDADD = $(launcher_ldadd)
%C%_results_t_SOURCES = %D%/results.c %D%/folder.h %D%/made.h
%C%_results_t_CFLAGS = $(launcher_cflags) $(HDF5_CFLAGS) -DH5_USE_110_API
%C%_results_t_LDADD = $(launcher_ldadd) $(HDF5_LIBS)
%C%_verdict_t_SOURCES = %D%/verdict.c %D%/folder.h
%C%_verdict_t_CFLAGS = $(launcher_cflags)
%C%_verdict_t_LDADD = $(launcher_ldadd)
%C%_ranks_t_SOURCES = %D%/ranks.c %D%/folder.h
%C%_ranks_t_CFLAGS = $(launcher_cflags)
%C%_ranks_t_LDADD = $(launcher_ldadd)
%C%_advise_t_SOURCES = %D%/advise.c %D%/folder.h
%C%_advise_t_CFLAGS = $(launcher_cflags) $(HDF5_CFLAGS) -DH5_USE_110_API
%C%_advise_t_LDADD = $(launcher_ldadd) $(HDF5_LIBS)
endif

# the check before the start, over libraries that stand in for a driver's
check_LTLIBRARIES += %D%/fakenvml.la %D%/fakenvmlless.la %D%/fakecuda.la
%C%_fakenvml_la_SOURCES = %D%/fakenvml.c
%C%_fakenvml_la_LDFLAGS = -module -avoid-version -shared -rpath /none
%C%_fakenvmlless_la_SOURCES = %D%/fakenvml.c
%C%_fakenvmlless_la_CPPFLAGS = $(AM_CPPFLAGS) -DLESS
%C%_fakenvmlless_la_LDFLAGS = -module -avoid-version -shared -rpath /none
%C%_fakecuda_la_SOURCES = %D%/fakecuda.c
%C%_fakecuda_la_LDFLAGS = -module -avoid-version -shared -rpath /none
dist_check_SCRIPTS += %D%/check.t
if HAVE_CMOCKA
check_PROGRAMS += %D%/diagnosis.t
TESTS += %D%/diagnosis.t
%C%_diagnosis_t_SOURCES = %D%/diagnosis.c
%C%_diagnosis_t_CFLAGS = $(launcher_cflags)
%C%_diagnosis_t_LDADD = $(launcher_ldadd)
%C%_progress_t_SOURCES = %D%/progress.c %D%/folder.h
%C%_progress_t_CFLAGS = $(launcher_cflags)
%C%_progress_t_LDADD = $(launcher_ldadd)
%C%_stacks_t_SOURCES = %D%/stacks.c
%C%_stacks_t_CFLAGS = $(launcher_cflags)
%C%_stacks_t_LDADD = $(launcher_ldadd)
endif

# faults/: the bench that kills, freezes and refuses; its files say how to run it for long
check_LTLIBRARIES += %D%/faults/shim.la
%C%_faults_shim_la_SOURCES = %D%/faults/shim.c
%C%_faults_shim_la_LDFLAGS = -module -avoid-version -shared -rpath /none
%C%_faults_shim_la_LIBADD = -ldl
if HAVE_FUSE
check_PROGRAMS += %D%/faults/nfs
%C%_faults_nfs_SOURCES = %D%/faults/nfs.c
%C%_faults_nfs_CPPFLAGS = $(AM_CPPFLAGS) -D_FILE_OFFSET_BITS=64
%C%_faults_nfs_CFLAGS = $(AM_CFLAGS) $(FUSE_CFLAGS)
%C%_faults_nfs_LDADD = $(FUSE_LIBS)
endif
dist_check_SCRIPTS += %D%/faults.t
EXTRA_DIST += %D%/faults/bench.py %D%/faults/check.py %D%/faults/cluster.py %D%/faults/kill.py \
	%D%/faults/nfs.py %D%/faults/replay.py %D%/faults/syscalls.py

# contrib/
dist_check_SCRIPTS += %D%/digits.t %D%/python.t %D%/together.t
EXTRA_DIST += %D%/python/arrays.py %D%/python/board.py %D%/python/capture.py %D%/python/check.py %D%/python/core.py %D%/python/elastic.py \
	%D%/python/fakes/tensorflow.py %D%/python/frameworks.py %D%/python/hvdcalls.py %D%/python/hvdscript.py %D%/python/late.py %D%/python/parallel.py \
	%D%/python/parts.py %D%/python/plain.py %D%/python/together.py \
	%D%/python/ranks.py %D%/python/server.py %D%/python/sharded.py %D%/python/train.py \
	%D%/python/worlds.py
EXTRA_DIST += %D%/bench/python.py
if HAVE_SLURM
dist_check_SCRIPTS += %D%/allreduce.t %D%/meet.t %D%/cluster.t %D%/allocation.t %D%/minicluster.t
endif
dist_check_SCRIPTS += %D%/elastichosts.t %D%/elasticjob.t %D%/elasticrun.t
dist_check_SCRIPTS += %D%/lifecycle.t %D%/share.t %D%/oom.t
check_PROGRAMS += %D%/putevent
%C%_putevent_SOURCES = %D%/putevent.c
%C%_putevent_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
%C%_putevent_LDADD = launcher/liblauncher.la
