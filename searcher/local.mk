# searcher/: the search algorithms; libc and libm only.
noinst_LTLIBRARIES += %D%/libsearcher.la
%C%_libsearcher_la_SOURCES = \
	%D%/numeric/bfgs.c %D%/numeric/factor.c %D%/numeric/kumaraswamy.c %D%/numeric/matern.c \
	%D%/numeric/rng.c %D%/numeric/warp.c \
	%D%/space/constraint.c %D%/space/constraint_value.c %D%/space/params.c %D%/space/space.c \
	%D%/objectives/ehvi.c %D%/objectives/hypervolume.c %D%/objectives/pareto.c \
	%D%/state/waiting_trials.c %D%/state/ladder.c %D%/state/plan.c %D%/state/point.c \
	%D%/models/cmaes.c %D%/models/fidelity_transfer.c %D%/models/gp.c \
	%D%/models/importance.c %D%/models/parzen.c %D%/models/posterior.c %D%/models/surrogate.c \
	%D%/models/training_set.c \
	%D%/samplers/auto.c %D%/samplers/bayes.c %D%/samplers/evolve.c %D%/samplers/grid.c \
	%D%/samplers/lhs.c %D%/samplers/nsga2.c %D%/samplers/random.c %D%/samplers/sobol.c \
	%D%/samplers/tpe.c \
	%D%/schedulers/asha.c %D%/schedulers/full.c %D%/schedulers/halving.c \
	%D%/schedulers/pasha.c %D%/schedulers/population.c \
	%D%/schedulers/rung.c %D%/schedulers/stop.c \
	%D%/search/build.c %D%/search/check.c %D%/search/events.c %D%/search/extend.c \
	%D%/search/kinds.c %D%/search/moved_trial.c %D%/search/repeats.c %D%/search/searcher.c
# The same decisions on every machine: no fused multiply-add.  Nothing looks at
# errno or exceptions of maths, so that loops may be vectorised.
%C%_libsearcher_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off -fno-math-errno \
	-fno-trapping-math
