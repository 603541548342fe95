# tests/bench/: benchmarks to run by hand; each file says how; bench.h and benchlib.py have the shared code
EXTRA_PROGRAMS += %D%/searcher %D%/decision %D%/fidelity %D%/metrics %D%/gradients %D%/comm %D%/checkpoint \
	%D%/attach %D%/herd %D%/bootstrap %D%/stopping
%C%_searcher_LDADD = searcher/libsearcher.la -lm
%C%_decision_LDADD = searcher/libsearcher.la -lm
%C%_fidelity_LDADD = searcher/libsearcher.la -lm
%C%_stopping_LDADD = searcher/libsearcher.la -lm
%C%_metrics_LDADD = runtime/libslurmdl.la
%C%_gradients_LDADD = runtime/libslurmdl-comm.la
%C%_comm_LDADD = runtime/libslurmdl-comm.la
%C%_bootstrap_LDADD = runtime/libslurmdl-comm.la
%C%_checkpoint_LDADD = $(runtime_libs)
%C%_attach_LDADD = $(launcher_libs)
%C%_herd_LDADD = $(launcher_libs) -ldl
