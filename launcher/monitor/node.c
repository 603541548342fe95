/* SPDX-License-Identifier: Apache-2.0 */
/* What a node as a whole does: memory, network, pressure. */
#include "launcher/monitor/node.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/host/sysfs.h"

enum { TEXT = 16384, PORTS_MAX = 16, DEPTH_MAX = 32 };

struct port {
    char name[48]; /* "mlx5_0/1" */
    double rate;   /* bytes a second */
};

struct node_usage {
    int proc, sys;
    int cgroup;   /* of the job, -1: none that limits */
    double limit; /* bytes */
    struct port ports[PORTS_MAX];
    int nports;
};

static double number_in (int root, const char *path)
{
    char text[64];
    char *end;
    double v;

    if (sysfs_line (root, path, text, sizeof (text)) < 0)
        return NAN;
    v = strtod (text, &end);
    return end == text ? NAN : v;
}

/* The number after 'key' in a text; NaN: there is none. */
static double value_of (const char *text, const char *key)
{
    const char *at = strstr (text, key);

    return at ? strtod (at + strlen (key), NULL) : NAN;
}

/* ---- memory, load ---- */

static void sample_memory (const struct node_usage *n, struct series *s)
{
    char text[TEXT];
    double total, available;

    if (sysfs_file (n->proc, "meminfo", text, sizeof (text)) < 0)
        return;
    total = value_of (text, "MemTotal:") * 1024;
    available = value_of (text, "MemAvailable:") * 1024;
    series_put (s, SERIES_GAUGE, total, "node/memory_size");
    series_put (s, SERIES_GAUGE, total - available, "node/memory");
}

static void sample_cgroup (const struct node_usage *n, struct series *s)
{
    double used;

    series_put (s, SERIES_GAUGE, n->limit, "node/limit");
    if (n->cgroup < 0)
        return;
    used = number_in (n->cgroup, "memory.current");
    if (isnan (used))
        used = number_in (n->cgroup, "memory.usage_in_bytes");
    series_put (s, SERIES_GAUGE, used, "node/job_memory");
}

/* Seconds in which some process waited: of the job, if its cgroup is known,
 * else of the machine.
 */
static void sample_pressure (const struct node_usage *n, struct series *s)
{
    static const char *const kinds[] = { "cpu", "io", "memory" };
    char path[64];
    char text[512];

    for (size_t i = 0; i < sizeof (kinds) / sizeof (*kinds); i++) {
        snprintf (path, sizeof (path), "%s.pressure", kinds[i]);
        if (n->cgroup < 0 || sysfs_file (n->cgroup, path, text, sizeof (text)) < 0) {
            snprintf (path, sizeof (path), "pressure/%s", kinds[i]);
            if (sysfs_file (n->proc, path, text, sizeof (text)) < 0)
                continue;
        }
        series_put (s, SERIES_COUNTER, value_of (text, "total=") * 1e-6, "node/pressure_%s",
                    kinds[i]);
    }
}

/* ---- network ---- */

/* Bytes a second; NaN: the driver does not say. */
static double speed (const struct node_usage *n, const char *interface)
{
    char path[96];
    double mbit;

    snprintf (path, sizeof (path), "class/net/%s/speed", interface);
    mbit = number_in (n->sys, path);
    return mbit > 0 ? mbit * 1e6 / 8 : NAN;
}

/* "  eth0: 1234 5 0 0 0 0 0 0 678 9 ...": received, and sent 8 further on. */
static void sample_interface (const struct node_usage *n, char *line, struct series *s)
{
    char *colon = strchr (line, ':');
    char *name = line + strspn (line, " ");
    double received, sent;

    if (!colon)
        return;
    *colon = '\0';
    if (!strcmp (name, "lo") || strlen (name) > 15
        || sscanf (colon + 1, "%lf %*s %*s %*s %*s %*s %*s %*s %lf", &received, &sent) != 2)
        return;
    series_put (s, SERIES_COUNTER, received, "net/%s/rx", name);
    series_put (s, SERIES_COUNTER, sent, "net/%s/tx", name);
    series_put (s, SERIES_GAUGE, speed (n, name), "net/%s/speed", name);
}

static void sample_net (const struct node_usage *n, struct series *s)
{
    char text[TEXT];
    char *rest = text;
    char *line;

    if (sysfs_file (n->proc, "self/net/dev", text, sizeof (text)) < 0)
        return;
    while ((line = strsep (&rest, "\n")))
        sample_interface (n, line, s);
}

/* The counters are in units of four bytes (InfiniBand's specification). */
static void sample_ports (const struct node_usage *n, struct series *s)
{
    char path[128];

    for (int i = 0; i < n->nports; i++) {
        const struct port *p = &n->ports[i];
        char device[48];
        int len = (int)strcspn (p->name, "/");
        snprintf (device, sizeof (device), "%.*s", len, p->name);
        for (int send = 0; send < 2; send++) {
            snprintf (path, sizeof (path), "class/infiniband/%s/ports/%s/counters/port_%s_data",
                      device, p->name + len + 1, send ? "xmit" : "rcv");
            series_put (s, SERIES_COUNTER, number_in (n->sys, path) * 4, "ib/%s/%s", p->name,
                        send ? "tx" : "rx");
        }
        series_put (s, SERIES_GAUGE, p->rate, "ib/%s/speed", p->name);
    }
}

static DIR *open_folder (int root, const char *path)
{
    int fd = openat (root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir (fd);

    if (!dir && fd >= 0)
        close (fd);
    return dir;
}

static void find_ports_of (struct node_usage *n, const char *device)
{
    char path[320];
    struct dirent *e;
    DIR *dir;

    snprintf (path, sizeof (path), "class/infiniband/%s/ports", device);
    if (!(dir = open_folder (n->sys, path)))
        return;
    while ((e = readdir (dir)) && n->nports < PORTS_MAX) {
        struct port *p = &n->ports[n->nports];
        if (*e->d_name == '.' || strlen (e->d_name) > 7)
            continue;
        snprintf (p->name, sizeof (p->name), "%.36s/%.7s", device, e->d_name);
        snprintf (path, sizeof (path), "class/infiniband/%.36s/ports/%.7s/rate", device, e->d_name);
        p->rate = number_in (n->sys, path) * 1e9 / 8; /* "100 Gb/sec" */
        n->nports++;
    }
    closedir (dir);
}

static void find_ports (struct node_usage *n)
{
    DIR *dir = open_folder (n->sys, "class/infiniband");
    struct dirent *e;

    if (!dir)
        return;
    while ((e = readdir (dir)) && n->nports < PORTS_MAX)
        if (*e->d_name != '.' && strlen (e->d_name) <= 36)
            find_ports_of (n, e->d_name);
    closedir (dir);
}

/* ---- the cgroup ---- */

/* A limit as large as the address space is none. */
static double limit_of (int dir)
{
    double v = number_in (dir, "memory.max"); /* "max": NaN */

    if (isnan (v))
        v = number_in (dir, "memory.limit_in_bytes");
    return v > 0 && v < 1e15 ? v : NAN;
}

/* The lowest limit on the way up, and the folder that has it. */
static void climb (struct node_usage *n, char *path)
{
    for (int i = 0; i < DEPTH_MAX && *path; i++) {
        int dir = openat (n->sys, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        double v = dir < 0 ? NAN : limit_of (dir);
        char *slash = strrchr (path, '/');
        if (!isnan (v) && !(n->limit <= v)) {
            if (n->cgroup >= 0)
                close (n->cgroup);
            n->limit = v;
            n->cgroup = dir;
        } else if (dir >= 0) {
            close (dir);
        }
        if (!slash || !strcmp (slash + 1, "cgroup"))
            return;
        *slash = '\0';
    }
}

/* "0::/path" is version 2, "4:memory:/path" version 1. */
static void find_cgroup (struct node_usage *n)
{
    char text[TEXT];
    char path[PATH_MAX];
    char *rest = text;
    char *line;

    if (sysfs_file (n->proc, "self/cgroup", text, sizeof (text)) < 0)
        return;
    while ((line = strsep (&rest, "\n"))) {
        char *controllers = strchr (line, ':');
        char *at = controllers ? strchr (controllers + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = '\0';
        if (!strcmp (controllers, ":"))
            snprintf (path, sizeof (path), "fs/cgroup%s", at);
        else if (!strcmp (controllers, ":memory"))
            snprintf (path, sizeof (path), "fs/cgroup/memory%s", at);
        else
            continue;
        climb (n, path);
    }
}

/* ---- a sample ---- */

void node_sample (struct node_usage *n, struct series *s)
{
    sample_memory (n, s);
    sample_cgroup (n, s);
    sample_pressure (n, s);
    series_put (s, SERIES_GAUGE, number_in (n->proc, "loadavg"), "node/load");
    sample_net (n, s);
    sample_ports (n, s);
}

struct node_usage *node_create (const char *proc, const char *sys)
{
    struct node_usage *n = calloc (1, sizeof (*n));

    if (!n)
        return NULL;
    n->cgroup = -1;
    n->limit = NAN;
    n->proc = open (proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    n->sys = open (sys, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    find_cgroup (n);
    find_ports (n);
    return n;
}

void node_destroy (struct node_usage *n)
{
    if (!n)
        return;
    if (n->proc >= 0)
        close (n->proc);
    if (n->sys >= 0)
        close (n->sys);
    if (n->cgroup >= 0)
        close (n->cgroup);
    free (n);
}
