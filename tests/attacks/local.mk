# tests/attacks/: what another user of the node, network, file system or group tries; all must fail (doc/security.md)
attacks_tests = %D%/users.t %D%/join.t %D%/jobs.t %D%/links.t %D%/kinds.t %D%/pinned.t
TESTS += $(attacks_tests)
tests/attacks/join.log: tests/runtime/comm/meet
tests/attacks/jobs.log: tests/launcher/putevent
