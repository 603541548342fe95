# runtime/: libslurmdl, and what the plugin and the launcher share with it.
runtime_sources = \
	%D%/agree.c \
	%D%/blank.c \
	%D%/blank.h \
	%D%/candidates.c \
	%D%/candidates.h \
	%D%/check.c \
	%D%/check.h \
	%D%/clock.c \
	%D%/clock.h \
	%D%/comm/backend.h \
	%D%/comm/boot/boot.c \
	%D%/comm/boot/boot.h \
	%D%/comm/boot/lookup.c \
	%D%/comm/boot/lookup.h \
	%D%/comm/boot/meet.c \
	%D%/comm/boot/name.c \
	%D%/comm/boot/node.c \
	%D%/comm/boot/plant.c \
	%D%/comm/boot/pmi.c \
	%D%/comm/boot/pmix.c \
	%D%/comm/boot/step.c \
	%D%/comm/boot/tcp.c \
	%D%/comm/boot/tcp.h \
	%D%/comm/boot/tree.c \
	%D%/comm/boot/way.h \
	%D%/comm/collectives.c \
	%D%/comm/comm.c \
	%D%/comm/comm.h \
	%D%/comm/elastic/directory.c \
	%D%/comm/elastic/directory.h \
	%D%/comm/elastic/elastic.c \
	%D%/comm/elastic/elastic.h \
	%D%/comm/elastic/folder.c \
	%D%/comm/elastic/folder.h \
	%D%/comm/elastic/gate.c \
	%D%/comm/elastic/move.c \
	%D%/comm/elastic/open.c \
	%D%/comm/elastic/restore.c \
	%D%/comm/elastic/state.c \
	%D%/comm/engine/answers.c \
	%D%/comm/engine/batch.c \
	%D%/comm/engine/batch.h \
	%D%/comm/engine/batches.c \
	%D%/comm/engine/control.c \
	%D%/comm/engine/control.h \
	%D%/comm/engine/coordinator.c \
	%D%/comm/engine/coordinator.h \
	%D%/comm/engine/device.c \
	%D%/comm/engine/engine.c \
	%D%/comm/engine/engine.h \
	%D%/comm/engine/facts.c \
	%D%/comm/engine/facts.h \
	%D%/comm/engine/fuse.c \
	%D%/comm/engine/gather.c \
	%D%/comm/engine/join.c \
	%D%/comm/engine/largest.c \
	%D%/comm/engine/map.c \
	%D%/comm/engine/map.h \
	%D%/comm/engine/meet.c \
	%D%/comm/engine/packet.c \
	%D%/comm/engine/packet.h \
	%D%/comm/engine/queue.c \
	%D%/comm/engine/relay.c \
	%D%/comm/engine/relay.h \
	%D%/comm/engine/requests.c \
	%D%/comm/engine/runner.c \
	%D%/comm/engine/stall.c \
	%D%/comm/engine/stall.h \
	%D%/comm/engine/submit.c \
	%D%/comm/engine/talk.c \
	%D%/comm/engine/talk.h \
	%D%/comm/engine/tensor.c \
	%D%/comm/engine/tensor.h \
	%D%/comm/engine/timeline.c \
	%D%/comm/engine/timeline.h \
	%D%/comm/engine/topk.c \
	%D%/comm/engine/topk.h \
	%D%/comm/engine/tune.c \
	%D%/comm/engine/tune.h \
	%D%/comm/engine/users.h \
	%D%/comm/flat/flat.c \
	%D%/comm/flat/flat.h \
	%D%/comm/flat/parts.c \
	%D%/comm/flat/parts.h \
	%D%/comm/hier/hier.c \
	%D%/comm/hier/hier.h \
	%D%/comm/hier/stages.c \
	%D%/comm/load.c \
	%D%/comm/mesh/blame.c \
	%D%/comm/mesh/card.c \
	%D%/comm/mesh/card.h \
	%D%/comm/mesh/channel.h \
	%D%/comm/mesh/deliver.c \
	%D%/comm/mesh/dial.c \
	%D%/comm/mesh/dial.h \
	%D%/comm/mesh/home.c \
	%D%/comm/mesh/home.h \
	%D%/comm/mesh/mesh.c \
	%D%/comm/mesh/mesh.h \
	%D%/comm/mesh/socket.c \
	%D%/comm/mesh/socket.h \
	%D%/comm/mesh/tag.c \
	%D%/comm/mesh/tag.h \
	%D%/comm/mesh/transfer.c \
	%D%/comm/mesh/trouble.c \
	%D%/comm/mesh/wire.c \
	%D%/comm/mesh/wire.h \
	%D%/comm/native.c \
	%D%/comm/node/node.c \
	%D%/comm/node/node.h \
	%D%/comm/node/ops.c \
	%D%/comm/node/parts.c \
	%D%/comm/node/sync.c \
	%D%/comm/node/sync.h \
	%D%/comm/ps/apply.c \
	%D%/comm/ps/calls.c \
	%D%/comm/ps/calls.h \
	%D%/comm/ps/client.c \
	%D%/comm/ps/copy.c \
	%D%/comm/ps/copy.h \
	%D%/comm/ps/hello.c \
	%D%/comm/ps/link.c \
	%D%/comm/ps/link.h \
	%D%/comm/ps/open.c \
	%D%/comm/ps/people.c \
	%D%/comm/ps/peer.c \
	%D%/comm/ps/place.c \
	%D%/comm/ps/place.h \
	%D%/comm/ps/ps.h \
	%D%/comm/ps/rules.c \
	%D%/comm/ps/rules.h \
	%D%/comm/ps/save.c \
	%D%/comm/ps/save.h \
	%D%/comm/ps/serve.c \
	%D%/comm/ps/server.h \
	%D%/comm/ps/spare.c \
	%D%/comm/ps/store.c \
	%D%/comm/ps/sum.c \
	%D%/comm/ps/sum.h \
	%D%/comm/ps/table.c \
	%D%/comm/ps/table.h \
	%D%/comm/ps/wire.c \
	%D%/comm/ps/wire.h \
	%D%/comm/reduce/convert.c \
	%D%/comm/reduce/kernels.h \
	%D%/comm/reduce/narrow.c \
	%D%/comm/reduce/plain.c \
	%D%/comm/reduce/reduce.c \
	%D%/comm/reduce/reduce.h \
	%D%/commit.c \
	%D%/commit.h \
	%D%/context.c \
	%D%/copy.c \
	%D%/copy.h \
	%D%/crc32c.c \
	%D%/crc32c.h \
	%D%/crew.c \
	%D%/crew.h \
	%D%/draft.c \
	%D%/draft.h \
	%D%/error.c \
	%D%/error.h \
	%D%/fetch.c \
	%D%/fetch.h \
	%D%/futex.c \
	%D%/futex.h \
	%D%/h5.c \
	%D%/h5.h \
	%D%/io.c \
	%D%/io.h \
	%D%/journal.c \
	%D%/journal.h \
	%D%/layout.c \
	%D%/layout.h \
	%D%/left.c \
	%D%/link.c \
	%D%/link.h \
	%D%/logging.c \
	%D%/manifest.c \
	%D%/manifest.h \
	%D%/member.c \
	%D%/member.h \
	%D%/memory.c \
	%D%/memory.h \
	%D%/merge.c \
	%D%/merge.h \
	%D%/message.c \
	%D%/message.h \
	%D%/metrics.c \
	%D%/metrics.h \
	%D%/pieces.c \
	%D%/ports.c \
	%D%/pour.c \
	%D%/pour.h \
	%D%/private.h \
	%D%/reader.c \
	%D%/recorder.c \
	%D%/records.c \
	%D%/region.c \
	%D%/region.h \
	%D%/restore.c \
	%D%/retain.c \
	%D%/retain.h \
	%D%/ring.c \
	%D%/ring.h \
	%D%/samples.c \
	%D%/save.c \
	%D%/seal.c \
	%D%/slab.c \
	%D%/slab.h \
	%D%/slurmdl.h \
	%D%/slurmdl_comm.h \
	%D%/slurmdl_ps.h \
	%D%/snapshot.c \
	%D%/snapshot.h \
	%D%/stages.c \
	%D%/stop.c \
	%D%/stream.c \
	%D%/table.c \
	%D%/table.h \
	%D%/team.c \
	%D%/team.h \
	%D%/trial.c \
	%D%/types.c
runtime_cppflags = $(AM_CPPFLAGS) $(HDF5_CFLAGS) -DH5_USE_110_API -DPKGLIBDIR='"$(pkglibdir)"'
if HAVE_PMIX
runtime_cppflags += $(PMIX_CFLAGS) -DHAVE_PMIX
endif

noinst_LTLIBRARIES += %D%/libruntime.la
%C%_libruntime_la_SOURCES = $(runtime_sources)
%C%_libruntime_la_CPPFLAGS = $(runtime_cppflags)
%C%_libruntime_la_LIBADD = $(HDF5_LIBS) -ldl -lpthread -lm

# without dependencies: the plugin links it too
noinst_LTLIBRARIES += %D%/librankenv.la
%C%_librankenv_la_SOURCES = %D%/binding.c %D%/binding.h %D%/clusters.c %D%/cpus.c %D%/fabric.c %D%/fabric.h %D%/layout.c %D%/layout.h \
	%D%/nccl.c %D%/nccl.h %D%/nccllint.c %D%/ncclnames.c %D%/ncclsite.c %D%/place.c %D%/place.h \
	%D%/ports.c %D%/rankenv.c %D%/rankenv.h %D%/roles.c %D%/roles.h %D%/sysfs.c %D%/sysfs.h \
	%D%/task.c %D%/task.h %D%/topology.c %D%/topology.h %D%/values.c %D%/values.h \
	%D%/variables.c %D%/variables.h %D%/visible.c %D%/word.c %D%/word.h

lib_LTLIBRARIES += %D%/libslurmdl.la
%C%_libslurmdl_la_SOURCES =
%C%_libslurmdl_la_LIBADD = %D%/libruntime.la
%C%_libslurmdl_la_LDFLAGS = -version-info 0:0:0 -no-undefined -export-symbols-regex '^slurmdl_'
include_HEADERS += %D%/slurmdl.h %D%/slurmdl_comm.h %D%/slurmdl_ps.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = %D%/slurmdl.pc

if HAVE_CUDA
pkglib_LTLIBRARIES += %D%/slurmdl-cuda.la
%C%_slurmdl_cuda_la_SOURCES = %D%/cuda.c
%C%_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_slurmdl_cuda_la_LIBADD = -lcudart
%C%_slurmdl_cuda_la_LDFLAGS = $(CUDA_LDFLAGS) -module -avoid-version -shared \
	-export-symbols-regex '^slurmdl_memory_cuda$$'
endif

# back ends of the communicator that are loaded when they are wanted
if HAVE_MPI
pkglib_LTLIBRARIES += %D%/slurmdl-mpi.la
%C%_slurmdl_mpi_la_SOURCES = %D%/comm/mpi/mpi.c %D%/comm/mpi/calls.c %D%/comm/mpi/module.h %D%/comm/mpi/ops.c %D%/comm/mpi/trade.c %D%/clock.c %D%/error.c
%C%_slurmdl_mpi_la_CPPFLAGS = $(AM_CPPFLAGS)
%C%_slurmdl_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_slurmdl_mpi_la_LIBADD = $(MPI_LIBS) -ldl -lpthread
%C%_slurmdl_mpi_la_LDFLAGS = -module -avoid-version -shared -export-symbols-regex '^slurmdl_backend_mpi$$'
endif
if HAVE_NCCL
pkglib_LTLIBRARIES += %D%/slurmdl-nccl.la
%C%_slurmdl_nccl_la_SOURCES = %D%/comm/nccl/nccl.c %D%/comm/nccl/calls.c %D%/comm/nccl/module.h %D%/comm/nccl/queue.c %D%/clock.c %D%/error.c
%C%_slurmdl_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_slurmdl_nccl_la_LIBADD = -lnccl -lcudart
%C%_slurmdl_nccl_la_LDFLAGS = $(CUDA_LDFLAGS) -module -avoid-version -shared \
	-export-symbols-regex '^slurmdl_backend_nccl$$'
endif
