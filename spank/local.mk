# spank/: the plugin dl.so
spankdir = $(libdir)/slurm
spank_LTLIBRARIES = %D%/dl.la
%C%_dl_la_SOURCES = %D%/advice.c %D%/bind.c %D%/bind.h %D%/context.h %D%/debug.c \
	%D%/gather.c %D%/helper.c %D%/helper.h %D%/monitor.c %D%/nccl.c \
	%D%/options.c %D%/place.c %D%/place.h %D%/plugin.c %D%/policy.c %D%/task.c \
	%D%/variable.c %D%/variable.h
%C%_dl_la_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"' -DBINDIR='"$(bindir)"' \
	-DDEBUGDIR='"$(pkgdatadir)/debug"'
%C%_dl_la_LIBADD = runtime/librankenv.la
%C%_dl_la_LDFLAGS = -module -avoid-version -shared -Wl,-z,relro,-z,now,-z,nodelete \
	-export-symbols-regex '^(plugin_(name|type|version)|spank_plugin_version|slurm_spank_.*)$$'
