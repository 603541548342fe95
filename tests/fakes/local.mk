# tests/fakes/: fakes of libraries and of Slurm, and libraries to preload
EXTRA_LTLIBRARIES += %D%/trace.la %D%/nvml.la %D%/nvmlless.la %D%/cuda.la tests/faults/shim.la
%C%_trace_la_LDFLAGS = $(fake_ldflags)
%C%_nvml_la_LDFLAGS = $(fake_ldflags)
%C%_nvmlless_la_SOURCES = %D%/nvml.c
%C%_nvmlless_la_CPPFLAGS = $(AM_CPPFLAGS) -DLESS
%C%_nvmlless_la_LDFLAGS = $(fake_ldflags)
%C%_cuda_la_LDFLAGS = $(fake_ldflags)
tests_faults_shim_la_LDFLAGS = $(fake_ldflags)
tests_faults_shim_la_LIBADD = -ldl
if HAVE_FUSE
EXTRA_PROGRAMS += tests/faults/nfs
tests_faults_nfs_CPPFLAGS = $(AM_CPPFLAGS) -D_FILE_OFFSET_BITS=64
tests_faults_nfs_CFLAGS = $(AM_CFLAGS) $(FUSE_CFLAGS)
tests_faults_nfs_LDADD = $(FUSE_LIBS)
endif
if HAVE_SLURM
EXTRA_PROGRAMS += %D%/spank
%C%_spank_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
%C%_spank_LDADD = runtime/librank.la -ldl
endif

# Directories from which tests load backend modules: device/ (device memory is scrambled), host/ (all
# memory is device memory), gpu/ (the real modules on the fake CUDA runtime), parts/ (MPI calls are
# split as if a count did not fit into an int).
EXTRA_LTLIBRARIES += %D%/device/slurmdl-cuda.la
%C%_device_slurmdl_cuda_la_SOURCES = %D%/device.c
%C%_device_slurmdl_cuda_la_LDFLAGS = $(fake_ldflags)
if HAVE_MPI
EXTRA_LTLIBRARIES += %D%/mpi.la %D%/parts/slurmdl-mpi.la
%C%_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_mpi_la_LIBADD = $(MPI_LIBS)
%C%_mpi_la_LDFLAGS = $(fake_ldflags)
%C%_parts_slurmdl_mpi_la_SOURCES = $(mpi_sources)
%C%_parts_slurmdl_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) -DMPI_PART=100
%C%_parts_slurmdl_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_parts_slurmdl_mpi_la_LIBADD = $(MPI_LIBS) -ldl -lpthread
%C%_parts_slurmdl_mpi_la_LDFLAGS = $(fake_ldflags)
if HAVE_CUDA
EXTRA_LTLIBRARIES += %D%/gpu/mpi/slurmdl-cuda.la %D%/gpu/mpi/slurmdl-mpi.la
%C%_gpu_mpi_slurmdl_cuda_la_SOURCES = runtime/cuda/cuda.c
%C%_gpu_mpi_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_mpi_slurmdl_cuda_la_LIBADD = %D%/libcudart.la
%C%_gpu_mpi_slurmdl_cuda_la_LDFLAGS = $(fake_ldflags)
%C%_gpu_mpi_slurmdl_mpi_la_SOURCES = $(mpi_sources)
%C%_gpu_mpi_slurmdl_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) -DMPI_PART=1000
%C%_gpu_mpi_slurmdl_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_gpu_mpi_slurmdl_mpi_la_LIBADD = $(MPI_LIBS) -ldl -lpthread
%C%_gpu_mpi_slurmdl_mpi_la_LDFLAGS = $(fake_ldflags)
endif
endif
if HAVE_CUDA
EXTRA_LTLIBRARIES += %D%/libcudart.la %D%/gpu/cuda/slurmdl-cuda.la
%C%_libcudart_la_SOURCES = %D%/cudart.c
%C%_libcudart_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_libcudart_la_LDFLAGS = $(HARDEN_LDFLAGS) -avoid-version -shared -rpath /none
%C%_gpu_cuda_slurmdl_cuda_la_SOURCES = runtime/cuda/cuda.c
%C%_gpu_cuda_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_cuda_slurmdl_cuda_la_LIBADD = %D%/libcudart.la
%C%_gpu_cuda_slurmdl_cuda_la_LDFLAGS = $(fake_ldflags)
endif
if HAVE_NCCL
EXTRA_LTLIBRARIES += %D%/host/slurmdl-cuda.la %D%/host/slurmdl-nccl.la %D%/gpu/both/slurmdl-cuda.la \
	%D%/gpu/both/slurmdl-nccl.la
%C%_host_slurmdl_cuda_la_SOURCES = %D%/allonhost.c
%C%_host_slurmdl_cuda_la_LDFLAGS = $(fake_ldflags)
fake_nccl_sources = %D%/nccl.c $(nccl_sources)
%C%_host_slurmdl_nccl_la_SOURCES = $(fake_nccl_sources)
%C%_host_slurmdl_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_host_slurmdl_nccl_la_LIBADD = $(runtime_libs) %D%/libcudart.la
%C%_host_slurmdl_nccl_la_LDFLAGS = $(fake_ldflags)
%C%_gpu_both_slurmdl_cuda_la_SOURCES = runtime/cuda/cuda.c
%C%_gpu_both_slurmdl_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_both_slurmdl_cuda_la_LIBADD = %D%/libcudart.la
%C%_gpu_both_slurmdl_cuda_la_LDFLAGS = $(fake_ldflags)
%C%_gpu_both_slurmdl_nccl_la_SOURCES = $(fake_nccl_sources)
%C%_gpu_both_slurmdl_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_gpu_both_slurmdl_nccl_la_LIBADD = $(runtime_libs) %D%/libcudart.la
%C%_gpu_both_slurmdl_nccl_la_LDFLAGS = $(fake_ldflags)
endif
