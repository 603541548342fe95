/* SPDX-License-Identifier: Apache-2.0 */
/* Find metrics in a line of output. */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"

/* A pattern is a POSIX extended regular expression in which {name} matches a number (including nan
 * and inf), for example
 *     "epoch {step}: loss {training/loss}"
 * {step} is the step of the other metrics.  Without it, each matching line advances the step by
 * one.
 *
 * A pattern without {name} has two groups, a name and its value, for example
 *     "([A-Za-z]+)=([0-9.]+)"
 * It finds every match in a line; the k-th value of a name belongs to step k.
 *
 * PATTERN_JSON finds all numbers in a line that is a JSON object.  If it has a number "step", that
 * is the step of the others; else the k-th value of a name belongs to step k.
 */
struct pattern;

#define PATTERN_JSON "{}"
/* name=value */
#define PATTERN_TEXT                                                                               \
    "([A-Za-z0-9_|./-]+)[ \t]*=[ \t]*"                                                             \
    "([-+]?[0-9]*[.]?[0-9]*([eE][-+]?[0-9]+)?|[-+]?[nN][aA][nN]|"                                  \
    "[-+]?[iI][nN][fF])"

/* Returns NULL with 'err' if the expression is invalid. */
struct pattern *pattern_create (const char *text, struct slurmdl_error *err);
void pattern_destroy (struct pattern *p);

typedef int (*pattern_metric_f) (const char *name, int64_t step, double value, void *arg);

/* Call 'f' for each metric in 'line'.  Returns the number of metrics. */
int pattern_match (struct pattern *p, const char *line, pattern_metric_f f, void *arg);

/* Remove terminal escape sequences from a line, because colours may separate a name from its
 * number.
 */
void line_strip (char *line);
