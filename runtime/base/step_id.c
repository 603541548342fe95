/* SPDX-License-Identifier: Apache-2.0 */
/* The Slurm step that this process belongs to. */
#include "runtime/base/step_id.h"

#include <stdlib.h>
#include <string.h>

static const unsigned long long first_special = 0xfffffff0;

const char *step_id (void)
{
    const char *text = getenv ("SLURM_STEP_ID");

    if (!text || !*text)
        text = getenv ("SLURM_STEPID");
    if (!text || strspn (text, "0123456789") != strlen (text)
        || strtoull (text, NULL, 10) >= first_special)
        return "";
    return text;
}
