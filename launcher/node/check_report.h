/* SPDX-License-Identifier: Apache-2.0 */
/* Print a diagnosis, and where each rank runs. */
#pragma once

#include <stdio.h>

#include "launcher/node/diagnosis.h"

/* "n1, n2 and 7 more: WHY" of a finding. */
void finding_text (const struct diagnosis *d, const struct finding *f, char *buf, size_t size);

/* One line: what was looked at, and the worst of what was found. */
void diagnosis_line (const struct diagnosis *d, char *buf, size_t size);

/* The findings, a line each, and the table of nodes. */
void diagnosis_print (const struct diagnosis *d, FILE *to);

/* All of that as JSON; dl-check(1) has the fields. */
void diagnosis_json (const struct diagnosis *d, FILE *to);

/* A row for each rank: who is where. */
void ranks_print (json_t *const *ranks, long size, FILE *to);
