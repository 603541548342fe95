# contrib/
EXTRA_DIST += %D%/quickstart %D%/minicluster

EXTRA_DIST += %D%/examples/torch/train.py

# contrib/examples/digits: also built here, for the tests
digits = %D%/examples/digits
EXTRA_DIST += $(digits)/DATA.md $(digits)/asha.conf $(digits)/digits.csv.gz \
	$(digits)/digits.py $(digits)/python.conf
noinst_PROGRAMS += %D%/examples/digits/digits
%C%_examples_digits_digits_SOURCES = \
	%D%/examples/digits/digits.c \
	%D%/examples/digits/mlp.c \
	%D%/examples/digits/mlp.h
%C%_examples_digits_digits_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/runtime
%C%_examples_digits_digits_LDADD = runtime/libslurmdl.la -lz -lm
