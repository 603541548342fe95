# tests/launcher/
if HAVE_CMOCKA
launcher_units = %D%/alloc.t %D%/log.t %D%/conditions.t %D%/event.t %D%/pattern.t %D%/machines.t %D%/replay.t %D%/snapshot.t %D%/gc.t %D%/results.t %D%/failure.t %D%/oom.t \
	%D%/ranks.t %D%/faults.t %D%/offers.t %D%/table.t %D%/advise.t %D%/idle.t %D%/stacks.t %D%/progress.t %D%/heal.t %D%/slow.t %D%/diagnosis.t %D%/local_pool.t %D%/gather.t %D%/frozen.t %D%/reportdata.t %D%/take_file.t
EXTRA_PROGRAMS += $(launcher_units)
$(launcher_units): LDADD = $(launcher_libs) $(HDF5_LIBS) $(CMOCKA_LIBS)
$(launcher_units): $(launcher_archives)
endif
launcher_tests = %D%/executor.t %D%/doctor.t %D%/check.t %D%/monitor.t %D%/report.t %D%/outcomes.t %D%/lifecycle.t \
	%D%/watch.t %D%/work.t %D%/digits.t %D%/server.t %D%/export.t %D%/custom.t %D%/flow.t %D%/full.t %D%/code.t %D%/config.t %D%/hang.t \
	%D%/damage.t %D%/container.t %D%/recovery.t %D%/interactive.t %D%/faultstop.t %D%/goodput.t %D%/plot.t %D%/fuzz.t %D%/numbers.t \
	%D%/ckpt.t %D%/resume.t %D%/local.t %D%/memory.t %D%/best.t %D%/notify.t %D%/path.t %D%/environment.t %D%/env.t %D%/elastic.t \
	%D%/model.t %D%/output.t %D%/gpus.t %D%/queue.t %D%/stream.t %D%/options.t %D%/cli.t %D%/share.t %D%/show.t %D%/completion.t \
	%D%/try.t %D%/job.t $(launcher_units)
TESTS += $(launcher_tests)

# what scripts run
EXTRA_PROGRAMS += %D%/putevent
%C%_putevent_LDADD = $(launcher_libs)
EXTRA_PROGRAMS += %D%/makeschedule
%C%_makeschedule_LDADD = $(launcher_libs) $(HDF5_LIBS)
tests/launcher/goodput.log: %D%/makeschedule
EXTRA_PROGRAMS += %D%/makesweep
%C%_makesweep_LDADD = $(launcher_libs) $(HDF5_LIBS)
tests/launcher/lifecycle.log tests/launcher/memory.log tests/launcher/queue.log: %D%/putevent
tests/launcher/output.log tests/launcher/report.log tests/launcher/watch.log tests/launcher/plot.log tests/launcher/best.log tests/launcher/export.log: %D%/makesweep
tests/launcher/export.log tests/launcher/ckpt.log tests/launcher/flow.log tests/launcher/model.log: tests/runtime/writer
tests/launcher/check.log: tests/fakes/nvml.la tests/fakes/nvmlless.la tests/fakes/cuda.la
tests/launcher/monitor.log: tests/fakes/nvml.la
env_needs = tests/runtime/machine
if HAVE_SLURM
env_needs += tests/fakes/spank
endif
tests/launcher/env.log: $(env_needs)
if HAVE_CMOCKA
tests/launcher/elastic.log: tests/runtime/comm/elastic.t
endif
