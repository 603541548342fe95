# contrib/
EXTRA_DIST += %D%/quickstart %D%/minicluster

EXTRA_DIST += %D%/examples/torch/train.py

# contrib/examples/digits: also built here, for the tests
digits = %D%/examples/digits
EXTRA_DIST += $(digits)/DATA.md $(digits)/asha.conf $(digits)/digits.csv.gz \
	$(digits)/digits.py $(digits)/pbt.conf $(digits)/python.conf
noinst_PROGRAMS += %D%/examples/digits/digits
%C%_examples_digits_digits_SOURCES = \
	%D%/examples/digits/digits.c \
	%D%/examples/digits/mlp.c \
	%D%/examples/digits/mlp.h
%C%_examples_digits_digits_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/runtime
%C%_examples_digits_digits_LDADD = runtime/libslurmdl.la -lz -lm

# contrib/examples/allreduce: bandwidth of a sum over all ranks
allreduce = %D%/examples/allreduce
EXTRA_DIST += $(allreduce)/mpi.c $(allreduce)/nccl.c $(allreduce)/pmix.c
if HAVE_MPI
noinst_PROGRAMS += %D%/examples/allreduce/allreduce-mpi
%C%_examples_allreduce_allreduce_mpi_SOURCES = \
	%D%/examples/allreduce/allreduce.c \
	%D%/examples/allreduce/comm.h \
	%D%/examples/allreduce/mpi.c
%C%_examples_allreduce_allreduce_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
%C%_examples_allreduce_allreduce_mpi_LDADD = $(MPI_LIBS)
endif
if HAVE_NCCL
noinst_PROGRAMS += %D%/examples/allreduce/allreduce-nccl
%C%_examples_allreduce_allreduce_nccl_SOURCES = \
	%D%/examples/allreduce/allreduce.c \
	%D%/examples/allreduce/comm.h \
	%D%/examples/allreduce/nccl.c \
	%D%/examples/allreduce/spread.c
%C%_examples_allreduce_allreduce_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_examples_allreduce_allreduce_nccl_LDADD = -lnccl -lcudart
%C%_examples_allreduce_allreduce_nccl_LDFLAGS = $(CUDA_LDFLAGS)
if HAVE_PMIX
%C%_examples_allreduce_allreduce_nccl_SOURCES += %D%/examples/allreduce/pmix.c
%C%_examples_allreduce_allreduce_nccl_CPPFLAGS += -DWITH_PMIX=1 $(PMIX_CFLAGS)
%C%_examples_allreduce_allreduce_nccl_LDADD += $(PMIX_LIBS)
endif
endif
noinst_PROGRAMS += %D%/examples/allreduce/spread-check
%C%_examples_allreduce_spread_check_SOURCES = \
	%D%/examples/allreduce/comm.h \
	%D%/examples/allreduce/spread.c \
	%D%/examples/allreduce/spread-check.c
if HAVE_PMIX
%C%_examples_allreduce_spread_check_SOURCES += %D%/examples/allreduce/pmix.c
%C%_examples_allreduce_spread_check_CPPFLAGS = $(AM_CPPFLAGS) -DWITH_PMIX=1 $(PMIX_CFLAGS)
%C%_examples_allreduce_spread_check_LDADD = $(PMIX_LIBS)
endif
