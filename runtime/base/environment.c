/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables. */
#include "runtime/base/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/base/step_id.h"

const char *environment_text (const char *name, const char *otherwise)
{
    const char *value = getenv (name);

    return value && *value ? value : otherwise;
}

long long environment_number (const char *name, long long otherwise)
{
    const char *value = environment_text (name, "");
    char *end;
    int saved = errno;
    long long n;

    errno = 0;
    n = strtoll (value, &end, 10);
    if (!*value || *end || errno)
        n = otherwise;
    errno = saved;
    return n;
}

void environment_rank (long *rank, long *size)
{
    bool step = *step_id ();

    *rank = (long)environment_number ("RANK", -1);
    *size = (long)environment_number ("WORLD_SIZE", -1);
    if (*rank < 0 || *size <= *rank) {
        *rank = step ? (long)environment_number ("SLURM_PROCID", 0) : 0;
        *size = step ? (long)environment_number ("SLURM_NTASKS", 1) : 1;
    }
}
