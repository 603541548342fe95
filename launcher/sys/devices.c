/* SPDX-License-Identifier: Apache-2.0 */
/* Divide the GPUs and cores of this machine among processes. */
#include "launcher/sys/devices.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"

static const char *const variables[] = {
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    NULL,
};

static void split (struct devices *d)
{
    char *save = NULL;

    for (char *name = strtok_r (d->text, ",", &save); name && d->ngpus < DEVICES_MAX;
         name = strtok_r (NULL, ",", &save))
        d->gpus[d->ngpus++] = name;
    /* CUDA ends the list at a -1 */
    for (int i = 0; i < d->ngpus; i++)
        if (!strcmp (d->gpus[i], "-1"))
            d->ngpus = i;
}

/* List the numbers of the devices that exist: "0,1,2". */
static char *list_devices (const char *dev)
{
    char text[DEVICES_MAX * 4] = "";
    char path[PATH_MAX];
    size_t n = 0;

    for (int i = 0; i < DEVICES_MAX; i++) {
        snprintf (path, sizeof (path), "%s/nvidia%d", dev, i);
        if (access (path, F_OK) == 0)
            n += (size_t)snprintf (text + n, sizeof (text) - n, "%s%d", n ? "," : "", i);
    }
    return xstrdup (text);
}

struct devices *devices_find (const char *dev)
{
    struct devices *d = xcalloc (1, sizeof (*d));

    for (const char *const *v = variables; *v && !d->text; v++)
        if (getenv (*v)) {
            d->variable = *v;
            d->text = xstrdup (getenv (*v));
        }
    if (!d->text) {
        d->variable = variables[0];
        d->text = dev ? list_devices (dev) : xstrdup ("");
    }
    split (d);
    return d;
}

void devices_destroy (struct devices *d)
{
    if (d)
        free (d->text);
    free (d);
}

int devices_places (const struct devices *d, int each)
{
    return each > 0 ? d->ngpus / each : INT_MAX;
}

void devices_take (const struct devices *d, int first, int n)
{
    char text[DEVICES_MAX * 48] = "";
    size_t len = 0;

    for (int k = first; k < first + n && k < d->ngpus; k++)
        if (len + strlen (d->gpus[k]) + 2 < sizeof (text))
            len += (size_t)snprintf (text + len, sizeof (text) - len, "%s%s", len ? "," : "",
                                     d->gpus[k]);
    setenv (d->variable, text, 1);
}

int cores_count (void)
{
    cpu_set_t all;

    return sched_getaffinity (0, sizeof (all), &all) < 0 ? 0 : CPU_COUNT (&all);
}

void cores_take (long first, long n)
{
    cpu_set_t all, mine;
    long at = 0;

    if (sched_getaffinity (0, sizeof (all), &all) < 0)
        return;
    CPU_ZERO (&mine);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET (cpu, &all)) {
            if (at >= first && at < first + n)
                CPU_SET (cpu, &mine);
            at++;
        }
    sched_setaffinity (0, sizeof (mine), &mine);
}
