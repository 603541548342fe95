# tests/fuzz/: one fuzzer per parser.  tests/fuzz/list names what each reads; corpus/NAME has its inputs.
# This build runs each fuzzer once over its corpus.  ./configure --enable-fuzzers CC=clang links them with
# libFuzzer instead; tests/fuzz/run then searches for new inputs.
fuzz_programs = %D%/archive %D%/bootstrap %D%/check %D%/checkpoint %D%/constraint %D%/custom %D%/doctor %D%/dumps %D%/elastic %D%/engine \
	%D%/experiment %D%/flow %D%/handshake %D%/hparams %D%/layout %D%/log %D%/logpolicy %D%/mesh %D%/metrics %D%/nccl %D%/options %D%/pack \
	%D%/pattern %D%/peers %D%/proc %D%/registry %D%/results %D%/safetensors %D%/server %D%/stacks \
	%D%/syntax %D%/topology %D%/usage
if HAVE_SLURM
fuzz_programs += %D%/policy %D%/rollcall
%C%_policy_SOURCES = %D%/policy.c runtime/rank/condition.c spank/policy.c
%C%_policy_CFLAGS = $(AM_CFLAGS)
%C%_rollcall_CFLAGS = $(AM_CFLAGS)
endif
EXTRA_PROGRAMS += $(fuzz_programs)
EXTRA_LTLIBRARIES += %D%/libfuzz.la
%C%_libfuzz_la_SOURCES = %D%/fuzz.c
if FUZZERS
fuzz_ldflags = -fsanitize=fuzzer
else
%C%_libfuzz_la_SOURCES += %D%/main.c
endif
$(fuzz_programs): LDADD = %D%/libfuzz.la $(launcher_libs) $(HDF5_LIBS)
$(fuzz_programs): AM_LDFLAGS += $(fuzz_ldflags)
$(fuzz_programs): %D%/libfuzz.la $(launcher_archives)
.PHONY: fuzzers
fuzzers: $(fuzz_programs)

fuzz_tests = %D%/corpora.t
TESTS += $(fuzz_tests)
tests/fuzz/corpora.log: $(fuzz_programs)
