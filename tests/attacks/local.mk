# tests/attacks/: attacks by another user of the node, network, file system or group; all must fail (doc/security.md)
attacks_tests = %D%/code.t %D%/files.t %D%/flood.t %D%/flow.t %D%/kinds.t %D%/links.t %D%/jobs.t %D%/pinned.t %D%/replaced.t %D%/registry.t %D%/store.t %D%/join.t %D%/board.t %D%/relay.t %D%/minicluster.t %D%/users.t %D%/terminal.t %D%/heal.t \
	$(attacks_on_python)
attacks_on_python = %D%/trust.t %D%/endings.t %D%/wire.t %D%/folders.t %D%/hardened.t %D%/new.t %D%/python.t
TESTS += $(attacks_tests)
EXTRA_PROGRAMS += %D%/steady
%C%_steady_LDADD = $(runtime_libs)
tests/attacks/join.log tests/attacks/board.log tests/attacks/relay.log: tests/runtime/comm/meet
if HAVE_SLURM
tests/attacks/board.log: spank/dl.la tests/fakes/spank
endif
tests/attacks/registry.log: tests/runtime/writer
tests/attacks/flood.log: %D%/steady
tests/attacks/jobs.log tests/attacks/pinned.log tests/attacks/replaced.log: tests/launcher/putevent
if HAVE_PYTHON
$(attacks_on_python:.t=.log): contrib/python/_slurmdl.la contrib/python/_slurmdl_comm.la
endif
