# tests/python/
python_tests = %D%/python.t %D%/together.t
TESTS += $(python_tests)
if HAVE_PYTHON
tests/python/python.log tests/python/together.log: contrib/python/_slurmdl.la \
	contrib/python/_slurmdl_comm.la contrib/python/_slurmdl_ps.la
endif
