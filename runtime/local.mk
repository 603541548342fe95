# runtime/: libslurmdl, and what the plugin and the launcher share with it.
#   run/         a run: its handle, what it protects, its ranks, when it stops
#   metrics/     what is logged: queue, file, reader
#   checkpoint/  what is saved: the file, its parts, saving and restoring
#   comm/        ranks compute together: collectives, gradients, parameter server
#   host/        the GPUs, cores and NUMA nodes of a machine
#   rank/        what one task gets of a step: its rank, variables and devices
#   network/     the network of a node, and the variables that tune it
# Here lies what several of them share; context.c puts a run together.
# Includes go one way: metrics -> run, checkpoint -> run, comm -> rank and run,
# network -> rank -> host.
runtime_sources = \
	%D%/checkpoint/candidates.c \
	%D%/checkpoint/candidates.h \
	%D%/checkpoint/check.c \
	%D%/checkpoint/check.h \
	%D%/checkpoint/commit.c \
	%D%/checkpoint/commit.h \
	%D%/checkpoint/copy.c \
	%D%/checkpoint/copy.h \
	%D%/checkpoint/draft.c \
	%D%/checkpoint/draft.h \
	%D%/checkpoint/fetch.c \
	%D%/checkpoint/fetch.h \
	%D%/checkpoint/manifest.c \
	%D%/checkpoint/manifest.h \
	%D%/checkpoint/merge.c \
	%D%/checkpoint/merge.h \
	%D%/checkpoint/pieces.c \
	%D%/checkpoint/pour.c \
	%D%/checkpoint/pour.h \
	%D%/checkpoint/restore.c \
	%D%/checkpoint/save.c \
	%D%/checkpoint/snapshot.c \
	%D%/checkpoint/snapshot.h \
	%D%/checkpoint/stages.c \
	%D%/checkpoint/stream.c \
	%D%/checkpoint/types.c \
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
	%D%/comm/elastic/wish.c \
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
	%D%/comm/ps/peer.c \
	%D%/comm/ps/people.c \
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
	%D%/context.c \
	%D%/crc32c.c \
	%D%/crc32c.h \
	%D%/crew.c \
	%D%/crew.h \
	%D%/error.c \
	%D%/error.h \
	%D%/futex.c \
	%D%/futex.h \
	%D%/h5.c \
	%D%/h5.h \
	%D%/io.c \
	%D%/io.h \
	%D%/link.c \
	%D%/link.h \
	%D%/member.c \
	%D%/member.h \
	%D%/memory.c \
	%D%/memory.h \
	%D%/message.c \
	%D%/message.h \
	%D%/metrics/blank.c \
	%D%/metrics/blank.h \
	%D%/metrics/journal.c \
	%D%/metrics/journal.h \
	%D%/metrics/logging.c \
	%D%/metrics/metrics.c \
	%D%/metrics/metrics.h \
	%D%/metrics/reader.c \
	%D%/metrics/recorder.c \
	%D%/metrics/records.c \
	%D%/metrics/ring.c \
	%D%/metrics/ring.h \
	%D%/metrics/samples.c \
	%D%/metrics/seal.c \
	%D%/metrics/table.c \
	%D%/metrics/table.h \
	%D%/metrics/trial.c \
	%D%/rank/layout.c \
	%D%/rank/layout.h \
	%D%/rank/ports.c \
	%D%/run/agree.c \
	%D%/run/left.c \
	%D%/run/meet.c \
	%D%/run/meet.h \
	%D%/run/region.c \
	%D%/run/region.h \
	%D%/run/retain.c \
	%D%/run/retain.h \
	%D%/run/run.h \
	%D%/run/stop.c \
	%D%/run/team.c \
	%D%/run/team.h \
	%D%/run/wait.c \
	%D%/slab.c \
	%D%/slab.h \
	%D%/slurmdl.h \
	%D%/slurmdl_comm.h \
	%D%/slurmdl_ps.h \
	%D%/utf8.c \
	%D%/utf8.h
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
%C%_librankenv_la_SOURCES = \
	%D%/host/cpus.c \
	%D%/host/place.c \
	%D%/host/place.h \
	%D%/host/sysfs.c \
	%D%/host/sysfs.h \
	%D%/host/topology.c \
	%D%/host/topology.h \
	%D%/host/visible.c \
	%D%/network/fabric.c \
	%D%/network/fabric.h \
	%D%/network/nccl.c \
	%D%/network/nccl.h \
	%D%/network/nccllint.c \
	%D%/network/ncclnames.c \
	%D%/network/ncclsite.c \
	%D%/rank/binding.c \
	%D%/rank/binding.h \
	%D%/rank/clusters.c \
	%D%/rank/layout.c \
	%D%/rank/layout.h \
	%D%/rank/ports.c \
	%D%/rank/rankenv.c \
	%D%/rank/rankenv.h \
	%D%/rank/roles.c \
	%D%/rank/roles.h \
	%D%/rank/task.c \
	%D%/rank/task.h \
	%D%/rank/values.c \
	%D%/rank/values.h \
	%D%/rank/variables.c \
	%D%/rank/variables.h \
	%D%/word.c \
	%D%/word.h

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
