/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in JSON, including those that JSON cannot express. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* Convert NaN and infinities to the strings "nan", "inf" and "-inf". */
json_t *number_to_json (double v);
/* Convert NaN and infinities to null. */
json_t *finite_to_json (double v);
json_t *numbers_to_json (const double *v, size_t n);

/* Write the shortest text that reads back as the same number.  It has 6 digits or more, less
 * trailing zeros.
 */
enum { NUMBER_TEXT = 32 };
void number_text (char buf[NUMBER_TEXT], double v);

/* The same in a form that readers of YAML 1.1 such as PyYAML recognise as a number: 1.0e-05, not
 * 1e-05.
 */
void number_yaml (char buf[NUMBER_TEXT], double v);

/* The same with 15 digits or more: 1000000, not 1e+06. */
void number_digits (char buf[NUMBER_TEXT], double v);

/* Like json_dumpf() and json_dumps(), which print real numbers with 17 digits.  These print only 15
 * if that reads back as the same number, in the form of number_yaml().
 */
int json_put (const json_t *v, FILE *f, size_t flags);
char *json_string_of (const json_t *v, size_t flags);

/* The inverse of number_to_json().  Returns NaN if 'v' is not a number. */
double number_from_json (const json_t *v);
