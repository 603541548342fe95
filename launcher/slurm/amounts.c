/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of memory and time as Slurm writes them. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"

static const char memory_units[] = "KMGT";

int64_t slurm_bytes (const char *text)
{
    size_t digits = strspn (text, "0123456789");
    const char *unit = text + digits;
    const char *at;
    int shift = 20;

    if (digits == 0 || digits > 9)
        return -1;
    if (*unit) {
        if (!(at = strchr (memory_units, toupper ((unsigned char)*unit))))
            return -1;
        shift = 10 * (int)(at - memory_units + 1);
        unit++;
        unit += toupper ((unsigned char)*unit) == 'B';
    }
    return *unit ? -1 : (int64_t)strtoll (text, NULL, 10) << shift;
}

void slurm_bytes_text (char *buf, size_t size, int64_t bytes)
{
    int64_t n = (bytes + (1 << 20) - 1) >> 20;
    size_t unit = 1;

    while (n > 0 && n % 1024 == 0 && memory_units[unit + 1]) {
        n /= 1024;
        unit++;
    }
    snprintf (buf, size, "%lld%c", (long long)n, memory_units[unit]);
}

double slurm_seconds (const char *text)
{
    static const double time_units[][3] = {
        /* seconds per unit of one, two and three numbers: without days, then with days */
        { 60, 0, 0 },   { 60, 1, 0 },    { 3600, 60, 1 },
        { 3600, 0, 0 }, { 3600, 60, 0 }, { 3600, 60, 1 },
    };
    double part[3] = { 0 };
    double days = 0;
    const char *dash = text ? strchr (text, '-') : NULL;
    int n = 0;

    if (!text || text[strspn (text, "0123456789:-")])
        return 0;
    if (dash) {
        days = strtod (text, NULL);
        text = dash + 1;
    }
    n = sscanf (text, "%lf:%lf:%lf", &part[0], &part[1], &part[2]);
    if (n < 1)
        return 0;
    n += dash ? 2 : -1;
    return days * 86400 + part[0] * time_units[n][0] + part[1] * time_units[n][1]
           + part[2] * time_units[n][2];
}
