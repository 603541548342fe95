/* SPDX-License-Identifier: Apache-2.0 */
/* What a search will cost. */
#pragma once

struct experiment;

/* What the search will cost; 'seconds' for a unit of length, 0: unknown. */
void print_preview (const struct experiment *e);
