/* SPDX-License-Identifier: Apache-2.0 */
/* The types of hyperparameters that an experiment file may name. */
#pragma once

#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"

enum { KIND_CONST = -1 };

/* What a hyperparameter may hold; the first 'must' keys are needed. */
struct param_kind {
    const char *name;
    int type; /* enum param_type, or KIND_CONST */
    const char *keys[11];
    int must;
    bool values; /* a logarithmic range has its ends, not their exponents */
};

/* The type 'name' of the group 's'; where a type may be written in two ways,
 * the way of which a needed key is in 's'. NULL: there is no such type.
 */
const struct param_kind *param_kind_find (const char *name, const config_setting_t *s);

/* Tell each unknown key and each needed one that is missing.
 * Returns 0, or -1 if there was one.
 */
int param_kind_check (const struct param_kind *kind, const char *path, const config_setting_t *s,
                      struct problems *p);

/* Tell that there is no such 'type', and which was meant. */
void param_kind_unknown (const config_setting_t *type, const char *path, struct problems *p);

/* Tell 'text' about the hyperparameter 'path', where 's' stands. Returns -1. */
int param_problem (const config_setting_t *s, struct problems *p, const char *path,
                   const char *text);
