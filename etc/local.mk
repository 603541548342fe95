# etc/: what a site installs beside the programs
if HAVE_SLURM
plugstackdir = $(pkgdatadir)/plugstack.conf.d
nodist_plugstack_DATA = %D%/plugstack.conf.d/dl.conf
CLEANFILES += %D%/plugstack.conf.d/dl.conf
%D%/plugstack.conf.d/dl.conf: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && printf '%s\n' '# slurm-dl: see dl-spank(8)' 'optional $(spankdir)/dl.so' >$@
endif
bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = %D%/completion/dl
zshcompdir = $(datadir)/zsh/site-functions
dist_zshcomp_DATA = %D%/completion/_dl
fishcompdir = $(datadir)/fish/vendor_completions.d
dist_fishcomp_DATA = %D%/completion/dl.fish
ncclexamplesdir = $(pkgdatadir)/examples/nccl.d
dist_ncclexamples_DATA = %D%/nccl/efa.conf %D%/nccl/infiniband.conf %D%/nccl/roce.conf \
	%D%/nccl/slingshot.conf %D%/nccl/tcp.conf
# not byte-compiled: it must not depend on one release of Python
debugdir = $(pkgdatadir)/debug
dist_debug_DATA = %D%/debug/sitecustomize.py
