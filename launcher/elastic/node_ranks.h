/* SPDX-License-Identifier: Apache-2.0 */
/* Start the ranks of a node. */
#pragma once

#include "launcher/elastic/plan.h"

/* "NUMBER.TRY", by which its ranks and this command know it. */
void unit_name (const struct elastic *e, long i, char *buf, size_t size);

/* Start the ranks of unit 'i' and note their process; -1 with 'err'. */
int unit_start (struct elastic *e, long i, struct slurmdl_error *err);
