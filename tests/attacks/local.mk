# tests/attacks/: what another user of the node, network, file system or group tries; all must fail (doc/security.md)
attacks_tests = %D%/users.t
TESTS += $(attacks_tests)
