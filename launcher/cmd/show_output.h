/* SPDX-License-Identifier: Apache-2.0 */
/* The trials that a user selected, as text, JSON or CSV. */
#pragma once

#include <jansson.h>

#include "launcher/cmd/select.h"
#include "launcher/sweep/sweep.h"

/* Only the columns of --columns. */
void show_columns (const struct sweep *s, const struct selection *sel);
void show_csv (const struct sweep *s, const struct selection *sel);
/* The experiment with its trials. */
void show_json (const struct sweep *s, const struct selection *sel);

/* Print, and free. */
/* Those that are or were true, a line each. */
void print_conditions (const struct conditions *c);

void print_json (json_t *v);
