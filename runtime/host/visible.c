/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a machine that was read: distances, and names of devices. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/host/topology.h"

const char *const distance_names[] = { "PIX", "PXB", "PHB", "NODE", "SYS" };

static int components (const char *path)
{
    int n = 1;

    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* How many leading components two paths share. */
static int common (const char *a, const char *b)
{
    int n = 0;

    for (;;) {
        size_t m = strcspn (a, "/");
        if (m != strcspn (b, "/") || strncmp (a, b, m) != 0)
            return n;
        n++;
        if (!a[m] || !b[m])
            return n;
        a += m + 1;
        b += m + 1;
    }
}

enum distance topology_distance (const char *path_a, int node_a, const char *path_b, int node_b)
{
    int n = common (path_a, path_b);
    /* bridges on both ways below the last one that they share */
    int bridges = components (path_a) + components (path_b) - 2 * (n + 1);

    if (n >= 2)
        return bridges <= 2 ? DISTANCE_PIX : DISTANCE_PXB;
    if (n == 1)
        return DISTANCE_PHB;
    return node_a >= 0 && node_a == node_b ? DISTANCE_NODE : DISTANCE_SYS;
}

static int nth_reachable (const struct topology *t, enum gpu_vendor vendor, long n)
{
    for (int i = 0; i < t->gpus; i++)
        if (t->gpu[i].vendor == vendor && t->gpu[i].reachable && n-- == 0)
            return i;
    return -1;
}

static int by_uuid (const struct topology *t, enum gpu_vendor vendor, const char *name, size_t len)
{
    for (int i = 0; i < t->gpus; i++)
        if (t->gpu[i].vendor == vendor && t->gpu[i].reachable
            && !strncasecmp (t->gpu[i].uuid, name, len))
            return i;
    return -1;
}

/* One name of the list; -2 if it is none. */
static int device_named (const struct topology *t, enum gpu_vendor vendor, const char *name,
                         size_t len)
{
    static const char mig[] = "MIG-";
    static const char gpu[] = "GPU-";
    int found;

    if (len > 0 && strspn (name, "0123456789") >= len)
        found = nth_reachable (t, vendor, strtol (name, NULL, 10));
    else if (len > 4 && !strncmp (name, gpu, 4))
        found = by_uuid (t, vendor, name, len);
    else if (len > 8 && !strncmp (name, mig, 4) && !strncmp (name + 4, gpu, 4))
        return by_uuid (t, vendor, name + 4, strcspn (name + 4, "/,"));
    else
        return len > 4 && !strncmp (name, mig, 4) ? -1 : -2;
    return found < 0 ? -2 : found;
}

int topology_visible (const struct topology *t, enum gpu_vendor vendor, const char *list,
                      int visible[static GPUS_MAX])
{
    int n = 0;

    while (*list && n < GPUS_MAX) {
        size_t len = strcspn (list, ",");
        /* Intel's "0.1" is a tile of device 0 */
        size_t own = vendor == GPU_INTEL ? strcspn (list, ",.") : len;
        int device = device_named (t, vendor, list, own);
        if (device == -2)
            break;
        visible[n++] = device;
        list += len + (list[len] == ',');
    }
    return n;
}
