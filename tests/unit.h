/* SPDX-License-Identifier: Apache-2.0 */
/* What unit tests need: common headers, cmocka, and main(). */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* cmocka gives each test a state, which few of ours have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define COUNT(a) (sizeof (a) / sizeof (*(a)))

/* The end of a test: main(), which runs the cases of a table. */
#define RUN_TESTS(tests)                                                       \
    int main (void)                                                            \
    {                                                                          \
        return cmocka_run_group_tests (tests, NULL, NULL);                     \
    }
