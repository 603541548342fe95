# spank/: the plugin dl.so
spankdir = $(slurm_plugindir)
spank_LTLIBRARIES = %D%/dl.la
dist_plugstack_SCRIPTS = %D%/dl.so-is-not-loaded
%C%_dl_la_SOURCES = %D%/bind.c %D%/check_collector.c %D%/context.c %D%/debug.c %D%/defaults.c %D%/helper.c \
	%D%/monitor.c %D%/nccl.c %D%/options.c %D%/plugin.c %D%/policy.c %D%/rollcall.c %D%/step_environment.c %D%/task.c
%C%_dl_la_LIBADD = runtime/librank.la
%C%_dl_la_LDFLAGS = $(HARDEN_LDFLAGS) -module -avoid-version -shared -Wl,-z,relro,-z,now,-z,nodelete \
	-export-symbols-regex '^(plugin_(name|type|version)|spank_plugin_version|slurm_spank_.*)$$'
