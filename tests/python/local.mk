# tests/python/
python_tests = %D%/python.t %D%/together.t %D%/export.t %D%/det.t %D%/import.t %D%/sweep.t %D%/torch.t %D%/notebook.t %D%/sharded.t
TESTS += $(python_tests)
if HAVE_PYTHON
$(python_tests:.t=.log): contrib/python/_slurmdl.la contrib/python/_slurmdl_comm.la
endif
