/* SPDX-License-Identifier: Apache-2.0 */
/* Find metrics in a line of output. */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"

/* A pattern is a POSIX extended regular expression in which {name} stands
 * for a number (nan and inf are numbers), e.g.
 *     "epoch {step}: loss {training/loss}"
 * {step} gives the step of the other metrics; without it each line that
 * matches is one step further.
 *
 * One without {name} has two groups, of a name and of its value, e.g.
 *     "([A-Za-z]+)=([0-9.]+)"
 * and finds all that a line has; the k-th value of a name is that of step k.
 * So are the numbers in a line that is a JSON object, with PATTERN_JSON; its
 * number "step" is the step of the others.
 */
struct pattern;

#define PATTERN_JSON "{}"
/* name=value */
#define PATTERN_TEXT                                                                               \
    "([A-Za-z0-9_|./-]+)[ \t]*=[ \t]*"                                                             \
    "([-+]?[0-9]*[.]?[0-9]*([eE][-+]?[0-9]+)?|[-+]?[nN][aA][nN]|"                                  \
    "[-+]?[iI][nN][fF])"

/* Returns NULL with 'err' filled if the expression is not valid. */
struct pattern *pattern_create (const char *text, struct slurmdl_error *err);
void pattern_destroy (struct pattern *p);

typedef int (*pattern_metric_f) (const char *name, int64_t step, double value, void *arg);

/* Call 'f' for each metric in 'line'.  Returns how many there were. */
int pattern_match (struct pattern *p, const char *line, pattern_metric_f f, void *arg);

/* Take the escape sequences of terminals out of a line: colours stand between a
 * name and its number.
 */
void line_strip (char *line);
