# tests/attacks/: what another user of the node, network, file system or group tries; all must fail (doc/security.md)
attacks_tests = %D%/kinds.t %D%/links.t %D%/jobs.t %D%/pinned.t %D%/users.t
TESTS += $(attacks_tests)
tests/attacks/jobs.log tests/attacks/pinned.log: tests/launcher/putevent
