# tests/launcher/
if HAVE_CMOCKA
launcher_units = %D%/log.t %D%/event.t %D%/pattern.t %D%/machines.t %D%/replay.t %D%/snapshot.t %D%/gc.t %D%/results.t %D%/failure.t %D%/oom.t \
	%D%/ranks.t %D%/faults.t %D%/offers.t %D%/table.t %D%/advise.t %D%/stacks.t %D%/progress.t %D%/diagnosis.t %D%/gather.t %D%/frozen.t %D%/reportdata.t %D%/take_file.t
EXTRA_PROGRAMS += $(launcher_units)
$(launcher_units): LDADD = launcher/liblauncher.la $(HDF5_LIBS) $(CMOCKA_LIBS)
$(launcher_units): launcher/liblauncher.la
endif
launcher_tests = %D%/code.t %D%/cookbook.t %D%/recovery.t tests/faults/faults.t %D%/local.t %D%/executor.t %D%/outcomes.t \
	%D%/container.t %D%/environment.t %D%/lifecycle.t %D%/doctor.t %D%/custom.t \
	%D%/model.t %D%/notify.t %D%/watch.t %D%/plot.t %D%/best.t %D%/gpus.t %D%/interactive.t %D%/memory.t %D%/queue.t %D%/digits.t %D%/export.t \
	%D%/ckpt.t %D%/server.t %D%/fuzz.t %D%/config.t %D%/docs.t %D%/options.t %D%/cli.t %D%/damage.t \
	%D%/share.t %D%/show.t %D%/numbers.t %D%/completion.t %D%/faultstop.t %D%/resume.t %D%/try.t %D%/report.t %D%/firstday.t %D%/flow.t \
	$(launcher_units) tests/layers.t
TESTS += $(launcher_tests)

# what scripts run
EXTRA_PROGRAMS += %D%/putevent
%C%_putevent_LDADD = launcher/liblauncher.la
EXTRA_PROGRAMS += %D%/makesweep
%C%_makesweep_LDADD = launcher/liblauncher.la $(HDF5_LIBS)
tests/launcher/lifecycle.log tests/launcher/memory.log tests/launcher/queue.log: %D%/putevent
tests/launcher/report.log tests/launcher/watch.log tests/launcher/plot.log tests/launcher/best.log: %D%/makesweep
tests/launcher/export.log tests/launcher/ckpt.log tests/launcher/flow.log tests/launcher/model.log: tests/runtime/writer
if HAVE_FUSE
nfs_model = tests/faults/nfs
endif
tests/faults/faults.log: tests/faults/shim.la $(nfs_model)
