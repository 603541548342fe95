# tests/searcher/
if HAVE_CMOCKA
searcher_units = %D%/events.t %D%/rules.t %D%/objectives.t %D%/bayes.t %D%/tree.t %D%/cmaes.t %D%/searcher.t \
	%D%/ladder.t %D%/space.t %D%/grid.t %D%/asha.t %D%/brackets.t %D%/combinations.t %D%/model.t %D%/filling.t %D%/constraint.t \
	%D%/pareto.t %D%/ehvi.t %D%/values.t %D%/points.t %D%/repeats.t %D%/halving.t %D%/stop.t %D%/median.t %D%/population.t %D%/ranking.t %D%/rung.t \
	%D%/extend.t %D%/revive.t %D%/factor.t %D%/importance.t %D%/rng.t
EXTRA_PROGRAMS += $(searcher_units)
EXTRA_LTLIBRARIES += %D%/libtest.la
%C%_libtest_la_SOURCES = %D%/sweep.c
$(searcher_units): LDADD = %D%/libtest.la searcher/libsearcher.la $(CMOCKA_LIBS) -lm
$(searcher_units): %D%/libtest.la searcher/libsearcher.la
endif
searcher_tests = $(searcher_units) %D%/pure.t
TESTS += $(searcher_tests)
EXTRA_PROGRAMS += %D%/decisions
%C%_decisions_LDADD = searcher/libsearcher.la -lm
