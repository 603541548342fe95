# tests/: a unit test is a cmocka program NAME.t made from NAME.c, a test of a
# program is a shell script NAME.t; both speak TAP.  The folders are those of the
# source; beside them: cluster/ (needs Slurm), attacks/, faults/, fakes/ (what stands in for
# a library or for Slurm), bench/ (run by hand).
#
#     make check-searcher (-runtime, -launcher, -spank, -python, -doc, -cluster,
#     -faults, -attacks, -fuzz, -sanitized, -root: what needs root)
#     make check TESTS=tests/searcher/asha.t           # makes only what it needs
#
# Long ones come first in a list: make begins with them.
TEST_EXTENSIONS = .t
# of another release of Slurm, whose programs are first in PATH: contrib/slurm-release
PLUGIN = $(abs_builddir)/spank/.libs/dl.so
SLURM_PREFIX =
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	PATH='$(abs_builddir)/launcher':"$$PATH"; export PATH; \
	srcdir='$(abs_srcdir)'; export srcdir; builddir='$(abs_builddir)'; export builddir; \
	PLUGIN='$(PLUGIN)'; export PLUGIN; SLURM_PREFIX='$(SLURM_PREFIX)'; export SLURM_PREFIX; \
	CC='$(CC)'; export CC; CFLAGS='$(CFLAGS)'; export CFLAGS;
T_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(T_LOG_DRIVER)
# no test takes longer than DL_TEST_SECONDS
T_LOG_COMPILER = $(top_srcdir)/tests/limit

# A program of tests/ is made from the one file of its name and what its folder
# links; the lines below say only what is different.
LDADD =
fake_ldflags = $(HARDEN_LDFLAGS) -module -avoid-version -shared -rpath /none

include tests/fakes/local.mk
include tests/faults/local.mk
include tests/cluster/local.mk
include tests/doc/local.mk
include tests/python/local.mk
include tests/runtime/local.mk
include tests/launcher/local.mk
include tests/searcher/local.mk
include tests/spank/local.mk
include tests/attacks/local.mk
include tests/gpu/local.mk
include tests/fuzz/local.mk
include tests/bench/local.mk

# what parses or handles memory, for a build with sanitizers; rules.t and bayes.t judge by many trials the code that the others run
sanitized_tests = $(filter-out tests/searcher/rules.t tests/searcher/bayes.t, $(searcher_units)) $(rank_units) $(runtime_units) $(device_units) $(launcher_units) $(spank_tests) \
	tests/runtime/save.t tests/runtime/languages.t tests/launcher/config.t tests/launcher/cli.t \
	tests/launcher/server.t tests/launcher/fuzz.t $(fuzz_tests) tests/launcher/ckpt.t tests/launcher/export.t tests/launcher/doctor.t \
	tests/python/python.t

# most of a test is waiting
check_jobs = 8
# a test has in its first lines that it needs root, all of it or "in part"
needs_root = for t in $(TESTS); do \
		f=$(srcdir)/$${t%.t}.c; test -f $$f || f=$(srcdir)/$$t; \
		if test -f $$f && sed 5q $$f | grep -q ' needs: root'; then printf '%s ' $$t; fi; \
	done
checks = check-searcher check-runtime check-launcher check-spank check-python check-doc check-cluster check-faults check-attacks check-fuzz check-sanitized
.PHONY: check-programs check-plain check-root print-slurm-tests $(checks)
# what contrib/slurm-release runs on each release
print-slurm-tests:
	@echo $(spank_tests) $(cluster_tests)
# what contrib/quickstart test runs without sanitizers: the corpora of the fuzzers find more with them
without_fuzzers = for w in $(WORDS); do case $$w in tests/fuzz/*) ;; *) printf '%s ' $$w ;; esac; done
# all that tests and benches need, compiled
check-programs: all
	$(MAKE) `$(without_fuzzers)`
check-programs: WORDS = $(EXTRA_PROGRAMS) $(EXTRA_LTLIBRARIES)
check-plain: all
	case " $(MAKEFLAGS)" in *" -j"*) jobs= ;; *) jobs="-j $(check_jobs)" ;; esac; \
	$(MAKE) $$jobs check-TESTS TESTS="`$(without_fuzzers)`"
check-plain: WORDS = $(TESTS)
$(checks): all
	case " $(MAKEFLAGS)" in *" -j"*) jobs= ;; *) jobs="-j $(check_jobs)" ;; esac; \
	$(MAKE) $$jobs check-TESTS TESTS="$($(@:check-%=%)_tests)"
check-root: all
	case " $(MAKEFLAGS)" in *" -j"*) jobs= ;; *) jobs="-j $(check_jobs)" ;; esac; \
	$(MAKE) $$jobs check-TESTS TESTS="`$(needs_root)`"
