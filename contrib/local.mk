# contrib/: the examples are built here for the tests, as a user would by pkg-config
digits_data = %D%/examples/digits/data.c %D%/examples/digits/mlp.c
example_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/runtime -I$(srcdir)/%D%/examples/digits
example_libs = runtime/libslurmdl.la -lz -lm
example_comm_libs = runtime/libslurmdl-comm.la $(example_libs)

noinst_PROGRAMS += %D%/examples/digits/digits %D%/examples/digits/elastic \
	%D%/examples/parallel/parallel
%C%_examples_digits_digits_SOURCES = %D%/examples/digits/digits.c $(digits_data)
%C%_examples_digits_digits_CPPFLAGS = $(example_cppflags)
%C%_examples_digits_digits_LDADD = $(example_libs)
%C%_examples_digits_elastic_SOURCES = %D%/examples/digits/elastic.c $(digits_data)
%C%_examples_digits_elastic_CPPFLAGS = $(example_cppflags)
%C%_examples_digits_elastic_LDADD = $(example_comm_libs)
%C%_examples_parallel_parallel_SOURCES = %D%/examples/parallel/parallel.c $(digits_data)
%C%_examples_parallel_parallel_CPPFLAGS = $(example_cppflags)
%C%_examples_parallel_parallel_LDADD = $(example_comm_libs)

# contrib/python: pip builds it; here its extensions are made for the tests, with the libraries in them
if HAVE_PYTHON
EXTRA_LTLIBRARIES += %D%/python/_slurmdl.la %D%/python/_slurmdl_comm.la
ext_common = %D%/python/ext/common.c %D%/python/ext/memory.c
ext_cppflags = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS) -I$(srcdir)/runtime -I$(srcdir)/%D%/python/ext
ext_ldflags = $(HARDEN_LDFLAGS) -module -avoid-version -shared -rpath /none -export-symbols-regex '^PyInit_'
%C%_python__slurmdl_la_SOURCES = $(ext_common) %D%/python/ext/run/checkpoint.c %D%/python/ext/run/file.c \
	%D%/python/ext/run/log.c %D%/python/ext/run/module.c %D%/python/ext/run/protect.c \
	%D%/python/ext/run/record.c %D%/python/ext/run/rows.c %D%/python/ext/run/run.c
%C%_python__slurmdl_la_CPPFLAGS = $(ext_cppflags)
%C%_python__slurmdl_la_LDFLAGS = $(ext_ldflags)
%C%_python__slurmdl_la_LIBADD = runtime/librun.la runtime/libbase.la $(HDF5_LIBS) -ldl -lpthread -lm
%C%_python__slurmdl_comm_la_SOURCES = $(ext_common) %D%/python/ext/comm/collective.c \
	%D%/python/ext/comm/comm.c %D%/python/ext/comm/elastic.c %D%/python/ext/comm/module.c \
	%D%/python/ext/comm/named.c
%C%_python__slurmdl_comm_la_CPPFLAGS = $(ext_cppflags)
%C%_python__slurmdl_comm_la_LDFLAGS = $(ext_ldflags)
%C%_python__slurmdl_comm_la_LIBADD = runtime/libcomm.la runtime/libnet.la runtime/libbase.la $(SODIUM_LIBS) -ldl -lpthread -lm
endif
