# doc/
dist_man_MANS += %D%/dl.1 %D%/dl-experiment.5 %D%/dl-spank.8 %D%/slurmdl.3 %D%/slurmdl_comm.3 %D%/slurmdl_ps.3
EXTRA_DIST += %D%/comm.md %D%/formats.md %D%/runtime.md %D%/search-quality.md %D%/sweep-faults.md \
	%D%/boilerplate.md %D%/plugin-cost.md
