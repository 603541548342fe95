# doc/
dist_man_MANS += %D%/dl.1 %D%/dl-experiment.5 %D%/dl-spank.8 %D%/slurmdl.3 %D%/slurmdl_comm.3 %D%/slurmdl_ps.3
