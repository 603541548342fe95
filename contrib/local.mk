# contrib/
EXTRA_DIST += %D%/quickstart %D%/minicluster

EXTRA_DIST += %D%/fortran/slurmdl.f90 %D%/fortran/fit.f90

EXTRA_DIST += %D%/examples/torch/train.py

# contrib/examples/digits: also built here, for the tests
digits = %D%/examples/digits
EXTRA_DIST += $(digits)/DATA.md $(digits)/asha.conf $(digits)/digits.csv.gz \
	$(digits)/digits.py $(digits)/pbt.conf $(digits)/python.conf
noinst_PROGRAMS += %D%/examples/digits/digits
%C%_examples_digits_digits_SOURCES = \
	%D%/examples/digits/data.c \
	%D%/examples/digits/data.h \
	%D%/examples/digits/digits.c \
	%D%/examples/digits/mlp.c \
	%D%/examples/digits/mlp.h
%C%_examples_digits_digits_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/runtime
%C%_examples_digits_digits_LDADD = runtime/libslurmdl.la -lz -lm

# contrib/examples/digits/elastic: on nodes that may fail
noinst_PROGRAMS += %D%/examples/digits/elastic
%C%_examples_digits_elastic_SOURCES = \
	%D%/examples/digits/data.c \
	%D%/examples/digits/data.h \
	%D%/examples/digits/elastic.c \
	%D%/examples/digits/mlp.c \
	%D%/examples/digits/mlp.h
%C%_examples_digits_elastic_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/runtime
%C%_examples_digits_elastic_LDADD = runtime/libslurmdl.la -lz -lm

# contrib/examples/parallel: the same on all ranks of a step
noinst_PROGRAMS += %D%/examples/parallel/parallel
%C%_examples_parallel_parallel_SOURCES = \
	%D%/examples/digits/data.c \
	%D%/examples/digits/data.h \
	%D%/examples/digits/mlp.c \
	%D%/examples/digits/mlp.h \
	%D%/examples/parallel/parallel.c
%C%_examples_parallel_parallel_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/runtime -I$(srcdir)/%D%/examples/digits
%C%_examples_parallel_parallel_LDADD = runtime/libslurmdl.la -lz -lm

# contrib/examples/ps: an embedding over a parameter server
noinst_PROGRAMS += %D%/examples/ps/embedding
%C%_examples_ps_embedding_SOURCES = %D%/examples/ps/embedding.c
%C%_examples_ps_embedding_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/runtime
%C%_examples_ps_embedding_LDADD = runtime/libslurmdl.la -lz -lm
EXTRA_DIST += %D%/examples/ps/embedding.py

# contrib/examples/allreduce: bandwidth of a sum over all ranks
allreduce = %D%/examples/allreduce
EXTRA_DIST += $(allreduce)/mpi.c $(allreduce)/nccl.c
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
%C%_examples_allreduce_allreduce_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -idirafter $(srcdir)/runtime
%C%_examples_allreduce_allreduce_nccl_LDADD = runtime/libslurmdl.la -lnccl -lcudart
%C%_examples_allreduce_allreduce_nccl_LDFLAGS = $(CUDA_LDFLAGS)
endif
noinst_PROGRAMS += %D%/examples/allreduce/spread-check
%C%_examples_allreduce_spread_check_SOURCES = \
	%D%/examples/allreduce/comm.h \
	%D%/examples/allreduce/spread.c \
	%D%/examples/allreduce/spread-check.c
%C%_examples_allreduce_spread_check_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/runtime
%C%_examples_allreduce_spread_check_LDADD = runtime/libslurmdl.la

# contrib/python: pip builds it; here its extension is made for the tests, with the library in it
python_package = %D%/python/slurmdl/__init__.py %D%/python/slurmdl/__main__.py %D%/python/slurmdl/_slurmdl.pyi \
	%D%/python/slurmdl/arrays.py %D%/python/slurmdl/capture.py %D%/python/slurmdl/comm.py \
	%D%/python/slurmdl/distributed.py %D%/python/slurmdl/elastic.py %D%/python/slurmdl/files.py %D%/python/slurmdl/fsdp.py \
	%D%/python/slurmdl/hparams.py %D%/python/slurmdl/keras.py %D%/python/slurmdl/lightning.py \
	%D%/python/slurmdl/loader.py %D%/python/slurmdl/names.py %D%/python/slurmdl/patterns.py %D%/python/slurmdl/ps.py %D%/python/slurmdl/py.typed \
	%D%/python/slurmdl/run.py %D%/python/slurmdl/sharded.py %D%/python/slurmdl/sklearn.py %D%/python/slurmdl/structure.py \
	%D%/python/slurmdl/tensors.py %D%/python/slurmdl/torch.py %D%/python/slurmdl/transformers.py \
	%D%/python/slurmdl/hvd/__init__.py %D%/python/slurmdl/hvd/adasum.py %D%/python/slurmdl/hvd/calls.py \
	%D%/python/slurmdl/hvd/compression.py %D%/python/slurmdl/hvd/elastic.py %D%/python/slurmdl/hvd/exchange.py \
	%D%/python/slurmdl/hvd/gather.py %D%/python/slurmdl/hvd/norm.py %D%/python/slurmdl/hvd/optimizer.py \
	%D%/python/slurmdl/hvd/reduce.py %D%/python/slurmdl/hvd/state.py %D%/python/slurmdl/hvd/world.py
python_extension = %D%/python/ext/collective.c %D%/python/ext/comm.c %D%/python/ext/comm.h %D%/python/ext/elastic.c \
	%D%/python/ext/ext.h \
	%D%/python/ext/file.c %D%/python/ext/log.c %D%/python/ext/memory.c \
	%D%/python/ext/module.c %D%/python/ext/named.c %D%/python/ext/ps.c %D%/python/ext/ps.h %D%/python/ext/push.c \
	%D%/python/ext/record.c %D%/python/ext/rows.c %D%/python/ext/run.c
EXTRA_DIST += %D%/python/README.md %D%/python/backend.py %D%/python/pyproject.toml $(python_package) $(python_extension)
EXTRA_DIST += %D%/examples/python/digits.py %D%/examples/python/digits.conf
if HAVE_PYTHON
check_LTLIBRARIES += %D%/python/_slurmdl.la
%C%_python__slurmdl_la_SOURCES = $(python_extension)
%C%_python__slurmdl_la_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS) -I$(srcdir)/runtime -DPKGLIBDIR='"$(pkglibdir)"'
%C%_python__slurmdl_la_LDFLAGS = -module -avoid-version -shared -rpath /none -export-symbols-regex '^PyInit_'
%C%_python__slurmdl_la_LIBADD = runtime/libruntime.la -ldl
endif
