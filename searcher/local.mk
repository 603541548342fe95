# searcher/
noinst_LTLIBRARIES += %D%/libsearcher.la
%C%_libsearcher_la_SOURCES = \
	%D%/searcher.h \
	%D%/searcher.c \
	%D%/kinds.c \
	%D%/check.c \
	%D%/state.h \
	%D%/events.c \
	%D%/extend.c \
	%D%/repeat.c \
	%D%/space.h \
	%D%/space.c \
	%D%/params.c \
	%D%/point.c \
	%D%/constraint.h \
	%D%/constraint.c \
	%D%/rng.h \
	%D%/rng.c \
	%D%/full.c \
	%D%/grid.c \
	%D%/sobol.c \
	%D%/lhs.c \
	%D%/view.h \
	%D%/view.c \
	%D%/pareto.h \
	%D%/pareto.c \
	%D%/hypervolume.c \
	%D%/ehvi.c \
	%D%/parzen.h \
	%D%/parzen.c \
	%D%/tpe.c \
	%D%/gp.h \
	%D%/gp.c \
	%D%/process.h \
	%D%/posterior.c \
	%D%/kumaraswamy.h \
	%D%/kumaraswamy.c \
	%D%/bfgs.h \
	%D%/bfgs.c \
	%D%/vector.h \
	%D%/factor.h \
	%D%/factor.c \
	%D%/matern.h \
	%D%/matern.c \
	%D%/study.h \
	%D%/study.c \
	%D%/improve.h \
	%D%/improve.c \
	%D%/bayes.h \
	%D%/bayes.c \
	%D%/carry.h \
	%D%/carry.c \
	%D%/auto.c \
	%D%/warp.h \
	%D%/warp.c \
	%D%/cmaes.h \
	%D%/cmaes.c \
	%D%/evolve.h \
	%D%/evolve.c \
	%D%/nsga2.c \
	%D%/ladder.h \
	%D%/ladder.c \
	%D%/rung.h \
	%D%/rung.c \
	%D%/asha.h \
	%D%/asha.c \
	%D%/halving.c \
	%D%/pasha.c \
	%D%/stop.c \
	%D%/population.c
# The same decisions on every machine: no fused multiply-add.  Nothing looks at
# errno or exceptions of maths, so that loops may be vectorised.
%C%_libsearcher_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off -fno-math-errno \
	-fno-trapping-math
