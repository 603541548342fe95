# tests/gpu/: tests that need a GPU (doc/gpu.md); a case is a file with a line "# case: order N, seconds S"
TESTS += %D%/bundle.t

# what contrib/gpu-bundle packs: programs from the build directory and files from the source tree, under the same paths
gpu_programs = tests/bench/checkpoint
if HAVE_CMOCKA
EXTRA_PROGRAMS += %D%/backend
%C%_backend_SOURCES = %D%/backend.c %D%/device.c %D%/worlds.c
%C%_backend_LDADD = $(runtime_ldadd) -lm -ldl
gpu_programs += %D%/backend
endif
gpu_files = tests/gpu tests/lib.sh contrib/minicluster
gpu_fakes = tests/fakes/nvml.la tests/fakes/cuda.la tests/fakes/device/slurmdl-cuda.la
if HAVE_NCCL
gpu_fakes += tests/fakes/libcudart.la tests/fakes/gpu/both/slurmdl-cuda.la tests/fakes/gpu/both/slurmdl-nccl.la \
	tests/fakes/host/slurmdl-cuda.la tests/fakes/host/slurmdl-nccl.la
endif
if HAVE_PYTHON
gpu_fakes += contrib/python/_slurmdl.la contrib/python/_slurmdl_comm.la
endif
%D%/bundle.log: $(gpu_programs) $(gpu_fakes)
.PHONY: print-gpu-programs print-gpu-files
print-gpu-programs:
	@echo $(gpu_programs)
print-gpu-files:
	@echo $(gpu_files)
