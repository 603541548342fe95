# etc/: what a site installs beside the programs
plugstackdir = $(pkgdatadir)/plugstack.conf.d
dist_plugstack_DATA = %D%/plugstack.conf.d/dl.conf
bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = %D%/completion/dl
ncclexamplesdir = $(pkgdatadir)/examples/nccl.d
dist_ncclexamples_DATA = %D%/nccl/efa.conf %D%/nccl/infiniband.conf %D%/nccl/roce.conf \
	%D%/nccl/slingshot.conf %D%/nccl/tcp.conf
# not byte-compiled: it must not depend on one release of Python
debugdir = $(pkgdatadir)/debug
dist_debug_DATA = %D%/debug/sitecustomize.py
