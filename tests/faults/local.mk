# tests/faults/
faults_tests = %D%/faults.t %D%/nfs.t
TESTS += $(faults_tests)
if HAVE_FUSE
nfs_model = %D%/nfs
endif
%D%/faults.log: %D%/shim.la
%D%/nfs.log: $(nfs_model)
