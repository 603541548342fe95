/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of memory as Slurm writes them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"

static const char units[] = "KMGT";

int64_t slurm_bytes (const char *text)
{
    size_t digits = strspn (text, "0123456789");
    const char *unit = text + digits;
    const char *at;
    int shift = 20;

    if (digits == 0 || digits > 9)
        return -1;
    if (*unit) {
        if (!(at = strchr (units, toupper ((unsigned char)*unit))))
            return -1;
        shift = 10 * (int)(at - units + 1);
        unit++;
        unit += toupper ((unsigned char)*unit) == 'B';
    }
    return *unit ? -1 : (int64_t)strtoll (text, NULL, 10) << shift;
}

void slurm_bytes_text (char *buf, size_t size, int64_t bytes)
{
    int64_t n = (bytes + (1 << 20) - 1) >> 20;
    size_t unit = 1;

    while (n > 0 && n % 1024 == 0 && units[unit + 1]) {
        n /= 1024;
        unit++;
    }
    snprintf (buf, size, "%lld%c", (long long)n, units[unit]);
}
