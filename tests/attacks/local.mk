# tests/attacks/: what another user of the node, network, file system or group tries; all must fail (doc/security.md)
attacks_tests = %D%/users.t %D%/join.t %D%/flood.t
TESTS += $(attacks_tests)
EXTRA_PROGRAMS += %D%/steady
%C%_steady_LDADD = runtime/libruntime.la
tests/attacks/join.log: tests/runtime/comm/meet
tests/attacks/flood.log: %D%/steady tests/runtime/ps/pswork
