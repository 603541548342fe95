/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits as Slurm writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"

double slurm_seconds (const char *text)
{
    static const double units[][3] = {
        /* of one, two and three numbers, without and with days */
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
    return days * 86400 + part[0] * units[n][0] + part[1] * units[n][1] + part[2] * units[n][2];
}
