/* SPDX-License-Identifier: Apache-2.0 */
/* What each unit test needs: cmocka, with the headers that it wants before. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmocka gives each test a state, which few of ours have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define COUNT(a) (sizeof (a) / sizeof (*(a)))
