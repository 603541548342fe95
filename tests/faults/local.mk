# tests/faults/
faults_tests = %D%/faults.t
TESTS += $(faults_tests)
if HAVE_FUSE
nfs_model = %D%/nfs
endif
%D%/faults.log: %D%/shim.la $(nfs_model)
