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
	%D%/comm/answers.c \
	%D%/comm/backend.h \
	%D%/comm/batch.c \
	%D%/comm/batch.h \
	%D%/comm/batches.c \
	%D%/comm/blame.c \
	%D%/comm/boot.c \
	%D%/comm/boot.h \
	%D%/comm/bootmeet.c \
	%D%/comm/bootname.c \
	%D%/comm/bootnode.c \
	%D%/comm/bootplant.c \
	%D%/comm/bootpmi.c \
	%D%/comm/bootpmix.c \
	%D%/comm/bootstep.c \
	%D%/comm/boottcp.c \
	%D%/comm/boottcp.h \
	%D%/comm/boottree.c \
	%D%/comm/bootway.h \
	%D%/comm/card.c \
	%D%/comm/card.h \
	%D%/comm/channel.h \
	%D%/comm/collectives.c \
	%D%/comm/comm.c \
	%D%/comm/comm.h \
	%D%/comm/control.c \
	%D%/comm/control.h \
	%D%/comm/convert.c \
	%D%/comm/coordinator.c \
	%D%/comm/coordinator.h \
	%D%/comm/deliver.c \
	%D%/comm/dial.c \
	%D%/comm/dial.h \
	%D%/comm/elastic.c \
	%D%/comm/elastic.h \
	%D%/comm/elasticdirectory.c \
	%D%/comm/elasticdirectory.h \
	%D%/comm/elasticfolder.c \
	%D%/comm/elasticfolder.h \
	%D%/comm/elasticgate.c \
	%D%/comm/elasticmove.c \
	%D%/comm/elasticopen.c \
	%D%/comm/elasticrestore.c \
	%D%/comm/elasticstate.c \
	%D%/comm/engine.c \
	%D%/comm/engine.h \
	%D%/comm/facts.c \
	%D%/comm/facts.h \
	%D%/comm/flat.c \
	%D%/comm/flat.h \
	%D%/comm/fuse.c \
	%D%/comm/gather.c \
	%D%/comm/hier.c \
	%D%/comm/hier.h \
	%D%/comm/home.c \
	%D%/comm/home.h \
	%D%/comm/join.c \
	%D%/comm/kernels.h \
	%D%/comm/largest.c \
	%D%/comm/load.c \
	%D%/comm/map.c \
	%D%/comm/map.h \
	%D%/comm/mesh.c \
	%D%/comm/mesh.h \
	%D%/comm/narrow.c \
	%D%/comm/native.c \
	%D%/comm/node.c \
	%D%/comm/node.h \
	%D%/comm/nodeops.c \
	%D%/comm/nodeparts.c \
	%D%/comm/nodesync.c \
	%D%/comm/nodesync.h \
	%D%/comm/packet.c \
	%D%/comm/packet.h \
	%D%/comm/parts.c \
	%D%/comm/parts.h \
	%D%/comm/plain.c \
	%D%/comm/ps.h \
	%D%/comm/psapply.c \
	%D%/comm/pscalls.c \
	%D%/comm/pscalls.h \
	%D%/comm/psclient.c \
	%D%/comm/pshello.c \
	%D%/comm/pslink.c \
	%D%/comm/pslink.h \
	%D%/comm/psopen.c \
	%D%/comm/pspeople.c \
	%D%/comm/psplace.c \
	%D%/comm/psplace.h \
	%D%/comm/psrules.c \
	%D%/comm/psrules.h \
	%D%/comm/psserve.c \
	%D%/comm/psserver.h \
	%D%/comm/psstore.c \
	%D%/comm/pssum.c \
	%D%/comm/pssum.h \
	%D%/comm/pstable.c \
	%D%/comm/pstable.h \
	%D%/comm/pswire.c \
	%D%/comm/pswire.h \
	%D%/comm/reduce.c \
	%D%/comm/reduce.h \
	%D%/comm/relay.c \
	%D%/comm/relay.h \
	%D%/comm/requests.c \
	%D%/comm/runner.c \
	%D%/comm/socket.c \
	%D%/comm/socket.h \
	%D%/comm/stages.c \
	%D%/comm/stall.c \
	%D%/comm/stall.h \
	%D%/comm/submit.c \
	%D%/comm/tag.c \
	%D%/comm/tag.h \
	%D%/comm/talk.c \
	%D%/comm/talk.h \
	%D%/comm/tensor.c \
	%D%/comm/tensor.h \
	%D%/comm/timeline.c \
	%D%/comm/timeline.h \
	%D%/comm/topk.c \
	%D%/comm/topk.h \
	%D%/comm/transfer.c \
	%D%/comm/trouble.c \
	%D%/comm/tune.c \
	%D%/comm/tune.h \
	%D%/comm/users.h \
	%D%/comm/wire.c \
	%D%/comm/wire.h \
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
%C%_slurmdl_mpi_la_SOURCES = %D%/comm/mpi.c %D%/comm/mpicalls.c %D%/comm/mpiself.h %D%/clock.c %D%/error.c
%C%_slurmdl_mpi_la_CPPFLAGS = $(AM_CPPFLAGS)
%C%_slurmdl_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_slurmdl_mpi_la_LIBADD = $(MPI_LIBS) -ldl -lpthread
%C%_slurmdl_mpi_la_LDFLAGS = -module -avoid-version -shared -export-symbols-regex '^slurmdl_backend_mpi$$'
endif
if HAVE_NCCL
pkglib_LTLIBRARIES += %D%/slurmdl-nccl.la
%C%_slurmdl_nccl_la_SOURCES = %D%/comm/nccl.c %D%/comm/ncclcalls.c %D%/comm/ncclself.h %D%/clock.c %D%/error.c
%C%_slurmdl_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_slurmdl_nccl_la_LIBADD = -lnccl -lcudart
%C%_slurmdl_nccl_la_LDFLAGS = $(CUDA_LDFLAGS) -module -avoid-version -shared \
	-export-symbols-regex '^slurmdl_backend_nccl$$'
endif
