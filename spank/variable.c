/* SPDX-License-Identifier: Apache-2.0 */
/* Read the variables of a task. */
#include "spank/variable.h"

static int get (void *arg, const char *name, char *buf, int size)
{
    spank_err_t rv = spank_getenv (arg, name, buf, size);

    return rv == ESPANK_SUCCESS ? 0 : rv == ESPANK_ENV_NOEXIST ? -1 : 1;
}

static void set (void *arg, const char *name, const char *value)
{
    spank_setenv (arg, name, value, 1);
}

static void unset (void *arg, const char *name)
{
    spank_unsetenv (arg, name);
}

struct variables variables_of (spank_t sp)
{
    return (struct variables){ get, set, unset, sp };
}

int variable_text (spank_t sp, const char *name, char *buf, int size)
{
    const struct variables v = variables_of (sp);

    return variables_text (&v, name, buf, size);
}

long variable_number (spank_t sp, const char *name)
{
    const struct variables v = variables_of (sp);

    return variables_number (&v, name);
}
