/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as JSON, with those that JSON does not have. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* NaN and infinities are the strings "nan", "inf" and "-inf"; null. */
json_t *number_to_json (double v);
json_t *finite_to_json (double v);
json_t *numbers_to_json (const double *v, size_t n);

/* The shortest text, of 6 digits at least before its trailing zeros go, that
 * reads back as the same number.
 */
enum { NUMBER_TEXT = 32 };
void number_text (char buf[NUMBER_TEXT], double v);

/* The same as readers of YAML 1.1, which PyYAML is, take it for a number:
 * 1.0e-05, not 1e-05.
 */
void number_yaml (char buf[NUMBER_TEXT], double v);

/* The same, of at least 15 digits: 1000000, not 1e+06. */
void number_digits (char buf[NUMBER_TEXT], double v);

/* As json_dumpf() and json_dumps(), which print 17 digits of each real number:
 * with 15 where these read back as the same one, and 1.0e-05 as number_yaml()
 * has it.
 */
int json_put (const json_t *v, FILE *f, size_t flags);
char *json_string_of (const json_t *v, size_t flags);

/* The number that 'v' is; NaN if it is none. */
double number_from_json (const json_t *v);
