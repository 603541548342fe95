# launcher/: the command dl.  All but main() is a library, for the tests.
noinst_LTLIBRARIES += %D%/liblauncher.la
%C%_liblauncher_la_SOURCES = \
	%D%/again.c \
	%D%/budget.c \
	%D%/check.c \
	%D%/cmd.c \
	%D%/cmd.h \
	%D%/collect.c \
	%D%/columns.c \
	%D%/columns.h \
	%D%/command.c \
	%D%/command.h \
	%D%/continue.c \
	%D%/create.c \
	%D%/custom.c \
	%D%/decide.c \
	%D%/devices.c \
	%D%/devices.h \
	%D%/edit.c \
	%D%/entries.c \
	%D%/environment.c \
	%D%/event.c \
	%D%/event.h \
	%D%/experiment.c \
	%D%/experiment.h \
	%D%/export.c \
	%D%/fields.c \
	%D%/fields.h \
	%D%/find.c \
	%D%/follow.c \
	%D%/fork.c \
	%D%/front.c \
	%D%/gc.c \
	%D%/gc.h \
	%D%/header.c \
	%D%/header.h \
	%D%/horovod.c \
	%D%/hosts.c \
	%D%/hparams.c \
	%D%/keys.c \
	%D%/life.c \
	%D%/life.h \
	%D%/lifecycle.c \
	%D%/local.c \
	%D%/log.c \
	%D%/log.h \
	%D%/logpolicies.c \
	%D%/logpolicy.c \
	%D%/logpolicy.h \
	%D%/logs.c \
	%D%/lost.c \
	%D%/lost.h \
	%D%/marks.c \
	%D%/metric.c \
	%D%/newest.c \
	%D%/oom.c \
	%D%/oom.h \
	%D%/overview.c \
	%D%/pack.c \
	%D%/pack.h \
	%D%/pattern.c \
	%D%/pattern.h \
	%D%/peer.c \
	%D%/peer.h \
	%D%/place.c \
	%D%/points.c \
	%D%/policy.c \
	%D%/preview.c \
	%D%/private.h \
	%D%/problem.c \
	%D%/put.c \
	%D%/put.h \
	%D%/rank.c \
	%D%/remove.c \
	%D%/replay.c \
	%D%/replay.h \
	%D%/report.c \
	%D%/reserve.c \
	%D%/rendezvous.c \
	%D%/rendezvous.h \
	%D%/reserve.h \
	%D%/results.c \
	%D%/results.h \
	%D%/rows.c \
	%D%/rows.h \
	%D%/run.c \
	%D%/scale.c \
	%D%/script.c \
	%D%/search.c \
	%D%/segment.c \
	%D%/server.c \
	%D%/show.c \
	%D%/slurm.c \
	%D%/socket.c \
	%D%/source.c \
	%D%/space.c \
	%D%/states.c \
	%D%/step.c \
	%D%/step.h \
	%D%/strings.c \
	%D%/sweep.c \
	%D%/sweep.h \
	%D%/trainer.c \
	%D%/trainer.h \
	%D%/values.c \
	%D%/verdict.c \
	%D%/verdict.h \
	%D%/view.c \
	%D%/wait.c \
	%D%/warm.c \
	%D%/when.c \
	%D%/wishes.c \
	%D%/worker.c \
	%D%/worker.h
%C%_liblauncher_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBCONFIG_CFLAGS) $(JANSSON_CFLAGS) \
	$(SMARTCOLS_CFLAGS) $(XXHASH_CFLAGS) $(HDF5_CFLAGS) -DH5_USE_110_API
%C%_liblauncher_la_LIBADD = searcher/libsearcher.la runtime/libruntime.la \
	runtime/librankenv.la \
	$(LIBCONFIG_LIBS) $(JANSSON_LIBS) $(SMARTCOLS_LIBS) $(XXHASH_LIBS) -lm

bin_PROGRAMS += %D%/dl
%C%_dl_SOURCES = %D%/main.c
%C%_dl_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(HDF5_CFLAGS)
%C%_dl_LDADD = %D%/liblauncher.la $(HDF5_LIBS)
