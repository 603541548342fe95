# A unit test is a cmocka program tests/NAME.t made from tests/NAME.c, a test
# of a program is a shell script tests/NAME.t; both speak TAP.
TEST_EXTENSIONS = .t
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	PATH='$(abs_builddir)/launcher':"$$PATH"; export PATH; \
	srcdir='$(abs_srcdir)'; export srcdir; builddir='$(abs_builddir)'; export builddir; \
	PLUGIN='$(abs_builddir)/spank/.libs/dl.so'; export PLUGIN;
T_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(T_LOG_DRIVER)

# searcher/

# runtime/

# spank/

# launcher/

# contrib/
