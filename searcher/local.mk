# searcher/
noinst_LTLIBRARIES += %D%/libsearcher.la
%C%_libsearcher_la_SOURCES = \
	%D%/searcher.h \
	%D%/searcher.c \
	%D%/state.h \
	%D%/events.c \
	%D%/space.h \
	%D%/space.c \
	%D%/rng.h \
	%D%/rng.c \
	%D%/ladder.h \
	%D%/ladder.c \
	%D%/single.c \
	%D%/grid.c \
	%D%/random.c \
	%D%/sobol.c \
	%D%/lhs.c \
	%D%/parzen.h \
	%D%/parzen.c \
	%D%/tpe.c \
	%D%/gp.h \
	%D%/gp.c \
	%D%/bayes.c \
	%D%/warp.h \
	%D%/warp.c \
	%D%/asha.c
# The same decisions on every machine: no fused multiply-add.
%C%_libsearcher_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
