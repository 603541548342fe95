# doc/
dist_man_MANS += %D%/dl.1 %D%/dl-experiment.5
