# doc/
dist_man_MANS += %D%/dl.1 \
	%D%/dl-notebook.1 %D%/dl-flow.1 %D%/dl-export.1 %D%/dl-model.1 %D%/dl-check.1 %D%/dl-ckpt.1 %D%/dl-debug.1 %D%/dl-doctor.1 %D%/dl-elastic.1 %D%/dl-env.1 %D%/dl-import.1 %D%/dl-job.1 \
	%D%/dl-log.1 %D%/dl-monitor.1 %D%/dl-run.1 %D%/dl-report.1 %D%/dl-search-server.1 %D%/dl-show.1 %D%/dl-stop.1 %D%/dl-watch.1 \
	%D%/slurmdl.3 %D%/slurmdl_comm.3 %D%/dl-experiment.5 \
	%D%/dl-spank.7 %D%/dl-trainer.7 %D%/dl-spank.8

# one source for the page on the web and the manual page
man_MANS += %D%/dl-cookbook.7
CLEANFILES += %D%/dl-cookbook.7
%D%/dl-cookbook.7: %D%/cookbook.md %D%/man.awk
	$(AM_V_GEN)$(MKDIR_P) %D% && $(AWK) -v date=2026-11-22 -f $(srcdir)/%D%/man.awk $(srcdir)/%D%/cookbook.md >$@.new && mv $@.new $@

dist_doc_DATA = README.md NEWS.md SECURITY.md %D%/administrator.md %D%/boilerplate.md %D%/comm.md %D%/cookbook.md %D%/first-day.md \
	%D%/formats.md %D%/gpu.md %D%/plugin-cost.md %D%/runtime.md %D%/search-quality.md %D%/security.md %D%/sweep-faults.md %D%/views.md
