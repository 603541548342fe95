# tests/spank/: the plugin in a stand-in for Slurm (tests/fakes/spank.c)
if HAVE_SLURM
if HAVE_CMOCKA
spank_units = %D%/bounds.t
EXTRA_PROGRAMS += %D%/bounds.t
%C%_bounds_t_SOURCES = %D%/bounds.c runtime/rank/condition.c spank/policy.c
%C%_bounds_t_CFLAGS = $(AM_CFLAGS)
%C%_bounds_t_LDADD = runtime/librank.la $(CMOCKA_LIBS)
endif
tests/spank/helpers.log tests/spank/plugin.log tests/spank/policy.log: tests/fakes/spank
tests/spank/bind.log: tests/fakes/spank tests/runtime/machine
endif
spank_tests = $(spank_units) %D%/plugin.t %D%/policy.t %D%/bind.t %D%/helpers.t
TESTS += $(spank_tests)
