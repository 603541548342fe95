# tests/launcher/
if HAVE_CMOCKA
launcher_units = %D%/log.t %D%/event.t %D%/pattern.t %D%/replay.t %D%/gc.t %D%/results.t %D%/verdict.t %D%/ranks.t \
	%D%/advise.t %D%/stacks.t %D%/progress.t %D%/diagnosis.t
EXTRA_PROGRAMS += $(launcher_units)
$(launcher_units): LDADD = launcher/liblauncher.la $(HDF5_LIBS) $(CMOCKA_LIBS)
$(launcher_units): launcher/liblauncher.la
endif
launcher_tests = $(launcher_units) %D%/docs.t %D%/options.t %D%/config.t %D%/cli.t %D%/server.t %D%/fuzz.t %D%/local.t \
	%D%/outcomes.t %D%/custom.t %D%/export.t %D%/executor.t %D%/ckpt.t %D%/lifecycle.t %D%/share.t \
	%D%/digits.t %D%/doctor.t tests/folders.t tests/faults/faults.t
TESTS += $(launcher_tests)

# what scripts run
EXTRA_PROGRAMS += %D%/putevent
%C%_putevent_LDADD = launcher/liblauncher.la
tests/launcher/lifecycle.log: %D%/putevent
tests/launcher/export.log tests/launcher/ckpt.log: tests/runtime/writer
if HAVE_FUSE
nfs_model = tests/faults/nfs
endif
tests/faults/faults.log: tests/faults/shim.la $(nfs_model)
