# etc/: what a site installs beside the programs
plugstackdir = $(pkgdatadir)/plugstack.conf.d
dist_plugstack_DATA = %D%/plugstack.conf.d/dl.conf
bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = %D%/completion/dl
