/* SPDX-License-Identifier: Apache-2.0 */
/* Read the counters of out-of-memory kills of cgroup v1 and v2. */
#include "launcher/sys/oom.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *folder, *file;
} versions[] = {
    { "/sys/fs/cgroup/memory", "memory.oom_control" },
    { "/sys/fs/cgroup",        "memory.events" },
};
/* clang-format on */
enum { V1, V2 };

/* Find the path in a line "ID:CONTROLLERS:PATH" of /proc/self/cgroup.  Returns NULL unless the line
 * belongs to the memory controller of this version.
 */
static char *memory_path (char *line, int version)
{
    char *controllers = strchr (line, ':');
    char *path = controllers ? strchr (controllers + 1, ':') : NULL;
    char *save = NULL;

    if (!path)
        return NULL;
    *controllers++ = *path++ = '\0';
    path[strcspn (path, "\n")] = '\0';
    if (version == V2)
        return !strcmp (line, "0") && !*controllers ? path : NULL;
    for (char *c = strtok_r (controllers, ",", &save); c; c = strtok_r (NULL, ",", &save))
        if (!strcmp (c, "memory"))
            return path;
    return NULL;
}

/* Returns -1 if this process has no such cgroup. */
static int own_path (const char *root, int version, char *buf, size_t size)
{
    char name[PATH_MAX];
    char line[PATH_MAX];
    char *path = NULL;
    FILE *f;

    snprintf (name, sizeof (name), "%s/proc/self/cgroup", root);
    if (!(f = fopen (name, "re")))
        return -1;
    while (!path && fgets (line, sizeof (line), f))
        path = memory_path (line, version);
    fclose (f);
    if (!path)
        return -1;
    snprintf (buf, size, "%s", strcmp (path, "/") ? path : "");
    return 0;
}

static long read_counter (const char *root, int version, const char *path)
{
    char name[3 * PATH_MAX];
    char line[256];
    long count = -1;
    FILE *f;

    snprintf (name, sizeof (name), "%s%s%s/%s", root, versions[version].folder, path,
              versions[version].file);
    if (!(f = fopen (name, "re")))
        return -1;
    while (count < 0 && fgets (line, sizeof (line), f))
        if (!strncmp (line, "oom_kill ", 9))
            count = strtol (line + 9, NULL, 10);
    fclose (f);
    return count;
}

long oom_kills (const char *root)
{
    for (int v = V1; v <= V2; v++) {
        char path[PATH_MAX];
        long count;
        if (own_path (root, v, path, sizeof (path)) < 0)
            continue;
        if ((count = read_counter (root, v, path)) >= 0)
            return count;
        /* a container without a cgroup namespace sees its own cgroup as the root */
        if ((count = read_counter (root, v, "")) >= 0)
            return count;
    }
    return -1;
}

/* Number of times the job reached its limit, from cgroup v1.  Its counters of kills do not help,
 * because they disappear with the cgroups of the steps.
 */
static long limit_hits (const char *root, const char *job)
{
    char name[3 * PATH_MAX];
    long count = -1;
    FILE *f;

    snprintf (name, sizeof (name), "%s%s%s/memory.failcnt", root, versions[V1].folder, job);
    if (!(f = fopen (name, "re")))
        return -1;
    if (fscanf (f, "%ld", &count) != 1)
        count = -1;
    fclose (f);
    return count;
}

long oom_kills_of_job (const char *root)
{
    for (int v = V1; v <= V2; v++) {
        char path[PATH_MAX];
        long count;
        char *step;
        if (own_path (root, v, path, sizeof (path)) < 0 || !(step = strstr (path, "/step_")))
            continue;
        *step = '\0'; /* the job's cgroup: job_N, or since Slurm 26.05 its SLUID */
        count = read_counter (root, v, path);
        if (v == V1 && count <= 0 && limit_hits (root, path) >= 0)
            count = limit_hits (root, path) > 0;
        if (count >= 0)
            return count;
    }
    return -1;
}

/* Read the number at the start of a file, or after 'key' in one of its lines.  Returns 0 if there
 * is none, or for "max".
 */
static int64_t read_bytes (const char *name, const char *key)
{
    FILE *f = fopen (name, "re");
    size_t n = strlen (key);
    char line[256];
    int64_t bytes = 0;

    if (!f)
        return 0;
    while (bytes == 0 && fgets (line, sizeof (line), f))
        if (!strncmp (line, key, n))
            bytes = (int64_t)strtoll (line + n, NULL, 10);
    fclose (f);
    return bytes > 0 ? bytes : 0;
}

static int64_t read_of_cgroup (const char *root, int version, const char *path, const char *file,
                               const char *key)
{
    char name[3 * PATH_MAX];

    snprintf (name, sizeof (name), "%s%s%s/%s", root, versions[version].folder, path, file);
    return read_bytes (name, key);
}

static int64_t smaller_limit (int64_t a, int64_t b)
{
    return b > 0 && (a == 0 || b < a) ? b : a;
}

int64_t oom_memory_limit (const char *root)
{
    char name[PATH_MAX];
    char path[PATH_MAX];
    int64_t limit;

    snprintf (name, sizeof (name), "%s/proc/meminfo", root);
    limit = read_bytes (name, "MemTotal:") * 1024;
    if (own_path (root, V1, path, sizeof (path)) == 0)
        limit = smaller_limit (
            limit, read_of_cgroup (root, V1, path, "memory.stat", "hierarchical_memory_limit "));
    if (own_path (root, V2, path, sizeof (path)) == 0)
        for (char *slash = path; slash; *slash = '\0') {
            limit = smaller_limit (limit, read_of_cgroup (root, V2, path, "memory.max", ""));
            if (!(slash = strrchr (path, '/')))
                break;
        }
    return limit;
}
