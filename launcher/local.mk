# launcher/: the command dl.  All but main() is a library, for the tests: one without libtool, which would copy the objects of all
# libraries in it anew whenever one file changes.
noinst_LIBRARIES += %D%/liblauncher.a
%C%_liblauncher_a_SOURCES = \
	%D%/sys/alloc.c %D%/sys/devices.c %D%/sys/digest.c %D%/sys/disk_reserve.c %D%/sys/gpu_readings.c %D%/sys/network_readings.c \
	%D%/sys/remove_tree.c %D%/sys/json_number.c %D%/sys/messages.c %D%/sys/nvml.c %D%/sys/oom.c %D%/sys/proc.c %D%/sys/publish_file.c %D%/sys/python.c %D%/sys/temporary_folder.c %D%/sys/terminal.c \
	%D%/sys/take_file.c %D%/sys/small_file.c %D%/sys/step_processes.c %D%/sys/strings.c \
	%D%/sys/subcommand.c \
	%D%/sys/subprocess.c \
	%D%/sys/user.c \
	%D%/slurm/accounting.c %D%/slurm/cancel.c %D%/slurm/amounts.c %D%/slurm/nodes.c %D%/slurm/queue.c %D%/slurm/step.c %D%/slurm/submit.c \
	%D%/config/diagnostics.c %D%/config/edit.c %D%/config/experiment.c %D%/config/flat.c %D%/config/hparams.c \
	%D%/config/job_settings.c %D%/config/keys.c \
	%D%/config/log_policy.c %D%/config/failure_settings.c %D%/config/metric_pattern.c \
	%D%/config/points.c %D%/config/plugin_settings.c \
	%D%/config/setting.c %D%/config/search_settings.c %D%/config/software_settings.c %D%/config/space.c \
	%D%/code/activate.c %D%/code/software.c %D%/code/container.c \
	%D%/code/archive.c %D%/code/frozen_files.c %D%/code/git.c %D%/code/pattern_list.c %D%/code/provenance.c \
	%D%/code/store.c %D%/code/working_copy.c %D%/config/syntax.c %D%/config/resources.c %D%/config/yaml.c \
	%D%/sweep/event.c %D%/sweep/experiment_json.c %D%/sweep/log.c \
	%D%/sweep/peer.c \
	%D%/sweep/best.c %D%/sweep/create.c \
	%D%/sweep/queries.c %D%/sweep/replay.c %D%/sweep/snapshot.c \
	%D%/sweep/sweep.c %D%/sweep/tries.c %D%/sweep/warm_start.c \
	%D%/sweep/columns.c %D%/sweep/conditions.c \
	%D%/sweep/metrics.c %D%/sweep/missing_metric.c \
	%D%/sweep/results_file.c \
	%D%/worker/retention.c \
	%D%/trainer/environment.c %D%/trainer/log_socket.c %D%/trainer/resume_dir.c \
	%D%/trainer/printed.c \
	%D%/trainer/shared_files.c %D%/trainer/step.c %D%/trainer/trainer.c %D%/trainer/work_folder.c \
	%D%/worker/executor_local.c %D%/worker/executor_slurm.c %D%/worker/local_pool.c \
	%D%/sweep/find_experiment.c \
	%D%/worker/notify.c %D%/model/export_tool.c \
	%D%/progress/changes.c %D%/progress/gpu_fill.c %D%/progress/draw_experiment.c \
	%D%/progress/screen.c %D%/progress/workers.c \
	%D%/sweep/trust.c \
	%D%/sweep/table.c %D%/sweep/text.c %D%/sweep/trials_table.c \
	%D%/worker/allocation.c %D%/worker/custom_searcher.c \
	%D%/worker/decide.c %D%/worker/failure.c %D%/worker/lost_worker.c \
	%D%/worker/report.c \
	%D%/worker/segment.c %D%/worker/worker.c %D%/worker/worker_state.c \
	%D%/cmd/freeze.c %D%/cmd/diff.c %D%/cmd/provenance.c %D%/cmd/reproduce.c %D%/cmd/try_run.c %D%/cmd/annotate.c \
	%D%/cmd/continue.c %D%/cmd/export.c %D%/cmd/follow.c %D%/cmd/command_check.c %D%/cmd/fork.c \
	%D%/cmd/gc.c %D%/cmd/job.c %D%/cmd/trial_shape.c %D%/cmd/import.c %D%/cmd/lifecycle.c %D%/cmd/list.c %D%/cmd/log.c \
	%D%/cmd/help.c %D%/cmd/logs.c %D%/cmd/option_table.c %D%/cmd/options.c %D%/cmd/overview.c %D%/cmd/preview.c %D%/cmd/scale.c \
	%D%/cmd/attend.c %D%/cmd/requeue.c %D%/cmd/run.c %D%/cmd/show.c %D%/cmd/start.c \
	%D%/cmd/try.c \
	%D%/model/ckpt.c %D%/model/safetensors.c \
	%D%/model/model.c \
	%D%/flow/attempt.c %D%/flow/cache.c %D%/flow/check.c %D%/flow/command.c %D%/flow/file.c %D%/flow/history.c %D%/flow/jobs.c %D%/flow/local.c \
	%D%/flow/run_folder.c %D%/flow/show.c %D%/flow/step.c %D%/flow/step_text.c %D%/flow/sweep_step.c %D%/flow/values.c \
	%D%/cmd/search_server.c \
	%D%/node/check_command.c %D%/node/diagnosis.c \
	%D%/node/gather.c \
	%D%/node/peers.c \
	%D%/node/doctor.c %D%/node/doctor_host.c \
	%D%/node/doctor_plugin.c %D%/node/doctor_site.c %D%/node/doctor_slurm.c \
	%D%/debug/debug.c %D%/debug/dump.c %D%/debug/process_class.c \
	%D%/debug/rank_progress.c %D%/debug/live_ranks.c %D%/debug/stacks.c \
	%D%/debug/watcher.c \
	%D%/heal/judge.c %D%/heal/rank.c %D%/heal/slow.c %D%/heal/watch.c %D%/worker/heal.c \
	%D%/monitor/advise.c %D%/monitor/idle.c %D%/monitor/sample.c \
	%D%/monitor/monitor.c \
	%D%/monitor/series.c %D%/monitor/usage.c \
	%D%/report/curves.c \
	%D%/report/page_data.c %D%/report/failure_causes.c %D%/report/experiments.c \
	%D%/report/page.c %D%/report/params.c \
	%D%/report/report_text.c \
	%D%/cmd/best.c %D%/cmd/compare.c %D%/cmd/failures.c %D%/cmd/goodput.c %D%/cmd/plot.c \
	%D%/cmd/top.c \
	%D%/cmd/notebook.c %D%/cmd/shell.c %D%/cmd/tensorboard.c \
	%D%/job/elastic_command.c %D%/job/elastic_plan.c %D%/job/members.c %D%/job/verdict.c \
	%D%/node/env.c \
	%D%/node/check_messages.c %D%/node/checks.c %D%/node/gpu_checks.c %D%/node/host_checks.c \
	%D%/debug/dump_folder.c
launcher_archives = %D%/liblauncher.a %D%/libreport.a searcher/libsearcher.la $(runtime_archives) runtime/librank.la
launcher_libs = $(launcher_archives) \
	$(HDF5_LIBS) $(LIBCONFIG_LIBS) $(YAML_LIBS) $(JANSSON_LIBS) $(SMARTCOLS_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -ldl -lm

bin_PROGRAMS += %D%/dl
# hdf5_lazy.c has what hdf5_linked.c has, so that dl itself needs no HDF5
%C%_dl_SOURCES = %D%/main.c runtime/storage/hdf5_lazy.c
%C%_dl_LDADD = $(launcher_libs)
%C%_dl_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed

# The version of dl --version and of what dl writes, with the commit: each make looks, and only a new one compiles these anew.
CLEANFILES += %D%/version.h
%D%/main.$(OBJEXT) %D%/code/provenance.$(OBJEXT) %D%/node/host_checks.$(OBJEXT) %D%/report/page.lo: %D%/version.h
%D%/version.h: FORCE
	$(AM_V_at)$(MKDIR_P) $(@D) && version=`$(srcdir)/contrib/package-facts version 2>/dev/null` || version=$(PACKAGE_VERSION); \
		echo "#define DL_VERSION \"`echo "$$version" | sed 's/+[0-9]*$$/+changed/'`\"" >$@.$$$$ && \
		if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi
.PHONY: FORCE
FORCE:

# The page of dl report: our files and the modules of D3 that it uses, embedded by the assembler.
noinst_LIBRARIES += %D%/libreport.a
%C%_libreport_a_SOURCES = %D%/report/assets.c
if HAVE_D3
report_assets = %D%/report/page/template.html %D%/report/page/report.css %D%/report/page/d3-licence.txt
# One script, in this order: what views use, the views, their start.
report_scripts = base expression selection colour curves history parallel slices surfaces rungs tradeoff failures timeline gpus table start
%C%_libreport_a_CPPFLAGS = $(AM_CPPFLAGS) -DREPORT_D3
%C%_libreport_a_CFLAGS = $(AM_CFLAGS) -Wa,-I$(srcdir)/%D% -Wa,-I$(builddir)/%D%
$(%C%_libreport_a_OBJECTS): $(report_assets) %D%/d3.js %D%/report.js
%D%/report.js: $(report_scripts:%=$(srcdir)/%D%/report/page/%.js)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { echo '(function () { "use strict";' && cat $^ && echo '})();'; } >$@.new && \
		mv $@.new $@
%D%/d3.js: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && for m in array collection color interpolate format scale contour; do \
		sed '/^\/\/# sourceMappingURL/d' "$(D3_DIR)/d3-$$m/dist/d3-$$m.min.js" && echo ';' || exit 1; done >$@.new && \
		mv $@.new $@
CLEANFILES += %D%/d3.js %D%/report.js
endif
