/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the lines of a file that grows. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/config/metric_pattern.h"

struct line_reader;

/* Look for 'texts' (metrics.pattern), NULL-ended, or NULL; 'f' is called for
 * what they find.  NULL: out of memory, or a pattern is not valid.
 */
struct line_reader *lines_create (char **texts, pattern_metric_f f, void *arg);
void lines_destroy (struct line_reader *l);

/* Whether there is any pattern. */
bool lines_wanted (const struct line_reader *l);

/* Read a file from '*at' on, up to its last whole line; '*at' is then where to
 * go on.  Returns -1 with errno if it could not be read to its end.
 */
int lines_read (struct line_reader *l, int fd, off_t *at);

/* The file has ended: what follows the last end of a line is a line. */
void lines_end (struct line_reader *l);
