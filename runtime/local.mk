# runtime/: libslurmdl, and what the plugin and the launcher share with it.
# without dependencies: the plugin links it, too
noinst_LTLIBRARIES += %D%/librank.la
%C%_librank_la_SOURCES = \
	%D%/base/nearest_word.c %D%/host/cpus.c %D%/host/place.c %D%/host/sysfs.c %D%/host/topology.c \
	%D%/rank/binding.c %D%/rank/condition.c %D%/rank/layout.c %D%/rank/plugin_options.c %D%/rank/ports.c \
	%D%/rank/rank_environment.c %D%/rank/roles.c %D%/rank/slurmconf.c %D%/rank/task.c \
	%D%/rank/variables.c %D%/network/exported.c %D%/network/fabric.c %D%/network/nccl.c %D%/network/nccl_lint.c \
	%D%/network/nccl_variables.c %D%/network/reach.c

# Each library has its own copy of base (hidden by its map).  What it keeps is harmless twice: a
# pointer to the one loaded slurmdl-cuda.so, and a table of CRC-32C.  What a process has once (signal
# handlers, the watch of the time limit, forks) is in libslurmdl only.
base_sources = \
	%D%/base/array.c %D%/base/clock.c %D%/base/device_memory.c %D%/base/environment.c %D%/base/error.c \
	%D%/base/futex.c %D%/base/process_id.c %D%/base/symbols.c %D%/base/step_id.c %D%/base/thread.c \
	%D%/base/thread_pool.c %D%/base/utf8.c %D%/base/nearest_word.c %D%/storage/crc32c.c %D%/storage/inside.c \
	%D%/storage/io.c %D%/storage/link.c %D%/storage/origin.c %D%/storage/name_index.c %D%/storage/slab.c \
	%D%/storage/tensor.c %D%/storage/whole_file.c
run_sources = \
	%D%/storage/h5.c %D%/storage/h5_image.c %D%/storage/hdf5_linked.c %D%/run/agree.c %D%/run/file_rendezvous.c \
	%D%/run/region.c %D%/run/retain.c %D%/run/session.c %D%/run/stop.c %D%/run/wait.c \
	%D%/metrics/header.c %D%/metrics/file.c %D%/metrics/metrics.c %D%/metrics/queue.c \
	%D%/metrics/reader.c %D%/metrics/recorder.c %D%/metrics/records.c %D%/metrics/ring.c %D%/metrics/table.c \
	%D%/metrics/trial.c %D%/checkpoint/check.c %D%/checkpoint/commit.c %D%/checkpoint/fetch.c \
	%D%/checkpoint/manifest.c %D%/checkpoint/pieces.c %D%/checkpoint/restore.c %D%/checkpoint/save.c \
	%D%/checkpoint/snapshot.c %D%/checkpoint/staging.c %D%/checkpoint/stream.c %D%/open/context.c
net_sources = \
	%D%/comm/net/address.c %D%/comm/net/board.c %D%/comm/net/clean.c %D%/comm/net/handshake.c \
	%D%/comm/net/interface.c %D%/comm/net/listen.c %D%/comm/net/listener.c %D%/comm/net/notice.c \
	%D%/comm/net/seal.c %D%/comm/net/secret.c %D%/comm/net/socket.c %D%/comm/net/stream.c
comm_sources = \
	%D%/rank/layout.c %D%/rank/ports.c %D%/comm/reduce/convert.c %D%/comm/reduce/narrow.c %D%/comm/reduce/plain.c \
	%D%/comm/reduce/reduce.c %D%/comm/bootstrap/accept.c %D%/comm/bootstrap/bootstrap.c %D%/comm/bootstrap/node.c \
	%D%/comm/bootstrap/pmi.c %D%/comm/bootstrap/pmix.c %D%/comm/bootstrap/step.c %D%/comm/bootstrap/tcp.c \
	%D%/comm/bootstrap/tree.c %D%/comm/mesh/mismatch.c %D%/comm/mesh/connect.c %D%/comm/mesh/links.c %D%/comm/mesh/dial.c \
	%D%/comm/mesh/endpoint.c %D%/comm/mesh/failure.c %D%/comm/mesh/mesh.c %D%/comm/mesh/ranks.c %D%/comm/mesh/transfer.c \
	%D%/comm/native/node.c %D%/comm/native/node_collectives.c %D%/comm/native/node_sync.c %D%/comm/native/flat.c \
	%D%/comm/native/hierarchical.c %D%/comm/api/backend.c %D%/comm/native/native.c %D%/comm/engine/batch.c %D%/comm/engine/batch_memory.c \
	%D%/comm/engine/connection.c %D%/comm/engine/control.c %D%/comm/engine/coordinator.c %D%/comm/engine/engine.c \
	%D%/comm/engine/executor.c %D%/comm/engine/gather.c %D%/comm/engine/join.c %D%/comm/engine/hash_map.c \
	%D%/comm/engine/packet.c %D%/comm/engine/queue.c %D%/comm/engine/readiness.c %D%/comm/engine/stall.c \
	%D%/comm/engine/submit.c %D%/comm/engine/named_tasks.c %D%/comm/engine/tensor.c \
	%D%/comm/engine/timeline.c %D%/comm/elastic/elastic.c %D%/comm/elastic/folder.c %D%/comm/elastic/membership.c \
	%D%/comm/elastic/open.c %D%/comm/elastic/restore.c %D%/comm/elastic/state.c %D%/comm/api/collectives.c \
	%D%/comm/api/comm.c %D%/comm/api/open.c
noinst_LTLIBRARIES += %D%/libbase.la %D%/librun.la %D%/libnet.la %D%/libcomm.la
%C%_libbase_la_SOURCES = $(base_sources)
%C%_librun_la_SOURCES = $(run_sources)
%C%_libnet_la_SOURCES = $(net_sources)
%C%_libcomm_la_SOURCES = $(comm_sources)
# all of it, for the launcher and the tests
runtime_archives = %D%/libcomm.la %D%/libnet.la %D%/librun.la %D%/libbase.la
runtime_libs = $(runtime_archives) $(HDF5_LIBS) $(SODIUM_LIBS) -ldl -lpthread -lm

lib_LTLIBRARIES += %D%/libslurmdl.la %D%/libslurmdl-comm.la
library_ldflags = $(HARDEN_LDFLAGS) -version-info 0:0:0 -no-undefined -Wl,--version-script=$(srcdir)/%D%
%C%_libslurmdl_la_SOURCES =
%C%_libslurmdl_la_LIBADD = %D%/librun.la %D%/libbase.la $(HDF5_LIBS) -ldl -lpthread -lm
%C%_libslurmdl_la_LDFLAGS = -Wl,-z,nodelete $(library_ldflags)/slurmdl.map
EXTRA_%C%_libslurmdl_la_DEPENDENCIES = %D%/slurmdl.map
%C%_libslurmdl_comm_la_SOURCES =
%C%_libslurmdl_comm_la_LIBADD = %D%/libcomm.la %D%/libnet.la %D%/libbase.la $(SODIUM_LIBS) -ldl -lpthread -lm
%C%_libslurmdl_comm_la_LDFLAGS = $(library_ldflags)/slurmdl_comm.map
EXTRA_%C%_libslurmdl_comm_la_DEPENDENCIES = %D%/slurmdl_comm.map
include_HEADERS += %D%/slurmdl.h %D%/slurmdl_error.h %D%/slurmdl_comm.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = %D%/slurmdl.pc %D%/slurmdl-comm.pc

# modules that are loaded when they are wanted
module_ldflags = $(HARDEN_LDFLAGS) -module -avoid-version -shared
if HAVE_CUDA
pkglib_LTLIBRARIES += %D%/slurmdl-cuda.la
%C%_slurmdl_cuda_la_SOURCES = %D%/cuda/cuda.c
%C%_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_slurmdl_cuda_la_LIBADD = -lcudart
%C%_slurmdl_cuda_la_LDFLAGS = $(CUDA_LDFLAGS) $(module_ldflags) \
	-export-symbols-regex '^slurmdl_memory_cuda$$'
endif
mpi_sources = %D%/comm/mpi/mpi.c %D%/base/clock.c %D%/base/error.c
if HAVE_MPI
pkglib_LTLIBRARIES += %D%/slurmdl-mpi.la
%C%_slurmdl_mpi_la_SOURCES = $(mpi_sources)
%C%_slurmdl_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_slurmdl_mpi_la_LIBADD = $(MPI_LIBS) -ldl -lpthread
%C%_slurmdl_mpi_la_LDFLAGS = $(module_ldflags) -export-symbols-regex '^slurmdl_backend_mpi$$'
endif
nccl_sources = %D%/comm/nccl/nccl.c 
if HAVE_NCCL
pkglib_LTLIBRARIES += %D%/slurmdl-nccl.la
%C%_slurmdl_nccl_la_SOURCES = $(nccl_sources) %D%/base/clock.c %D%/base/error.c
%C%_slurmdl_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_slurmdl_nccl_la_LIBADD = -lnccl -lcudart
%C%_slurmdl_nccl_la_LDFLAGS = $(CUDA_LDFLAGS) $(module_ldflags) \
	-export-symbols-regex '^slurmdl_backend_nccl$$'
endif
