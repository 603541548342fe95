/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the table of trials as CSV. */
#pragma once

#include <stdio.h>

#include "launcher/sweep/columns.h"

/* The line of the names, and that of a trial, as RFC 4180 has them. */
void csv_put_names (FILE *f, const struct columns *c, bool safe);
void csv_put_trial (FILE *f, const struct sweep *s, const struct columns *c, long trial, bool safe);
