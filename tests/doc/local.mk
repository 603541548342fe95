# tests/doc/: tests of the manuals, and of the tree as a whole
doc_tests = %D%/cookbook.t %D%/firstday.t %D%/docs.t tests/packages.t tests/install.t tests/layers.t tests/unit.t %D%/quickstart.t
TESTS += $(doc_tests)
