# tests/python/
python_tests = %D%/det.t %D%/export.t %D%/import.t %D%/together.t %D%/torch.t %D%/sharded.t %D%/python.t %D%/notebook.t %D%/sweep.t
TESTS += $(python_tests)
if HAVE_PYTHON
$(python_tests:.t=.log): contrib/python/_slurmdl.la contrib/python/_slurmdl_comm.la contrib/python/_slurmdl_ps.la
endif
