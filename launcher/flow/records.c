/* SPDX-License-Identifier: Apache-2.0 */
/* The records in the folder of a run: what has begun, and how it has ended. */
#include "launcher/flow/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/publish.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { RECORD_MAX = 8 << 20 };

static json_t *read_json (const char *path, struct slurmdl_error *err)
{
    size_t n;
    char *text = file_read_now (path, RECORD_MAX, &n, NULL, err);
    json_t *v = text ? json_loads (text, JSON_REJECT_DUPLICATES, NULL) : NULL;

    if (text && !v) {
        errorf (err, "%s: damaged", path);
        errno = EBADMSG;
    }
    free (text);
    return v;
}

void flow_path (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s, long task,
                const char *file, long number)
{
    char folder[32] = "";
    char last[64] = "";

    if (task >= 0)
        snprintf (folder, sizeof (folder), "/%ld", task);
    if (file && number > 0)
        snprintf (last, sizeof (last), "/%s.%ld", file, number);
    else if (file)
        snprintf (last, sizeof (last), "/%s", file);
    snprintf (buf, PATH_MAX, "%s/steps/%s%s%s", r->dir, s->name, folder, last);
}

json_t *flow_record (const struct flow_run *r, const struct flow_step *s, long task,
                     const char *file, long number)
{
    char path[PATH_MAX];

    flow_path (path, r, s, task, file, number);
    return read_json (path, NULL);
}

static int make_folders (const struct flow_run *r, const struct flow_step *s, long task,
                         struct slurmdl_error *err)
{
    char path[PATH_MAX];

    flow_path (path, r, s, -1, NULL, 0);
    if (folder_create (path, err) < 0)
        return -1;
    flow_path (path, r, s, task, NULL, 0);
    return task < 0 ? 0 : folder_create (path, err);
}

int flow_put (const struct flow_run *r, const struct flow_step *s, long task, const char *file,
              long number, json_t *record, struct slurmdl_error *err)
{
    char *text = record ? json_dumps (record, JSON_SORT_KEYS) : NULL;
    char path[PATH_MAX];
    int rv = -1;

    json_decref (record);
    flow_path (path, r, s, task, file, number);
    if (!text)
        errorf (err, "out of memory");
    else if (make_folders (r, s, task, err) == 0)
        rv = publish_if_absent (path, text, strlen (text), err);
    free (text);
    return rv;
}

static DIR *open_folder (const char *dir)
{
    int fd = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);

    return fd < 0 ? NULL : fdopendir (fd);
}

static long last_number (const char *dir, const char *file)
{
    DIR *d = open_folder (dir);
    size_t n = strlen (file);
    struct dirent *e;
    long last = 0;

    while (d && (e = readdir (d)))
        if (!strncmp (e->d_name, file, n) && e->d_name[n] == '.') {
            long number = strtol (e->d_name + n + 1, NULL, 10);
            last = number > last ? number : last;
        }
    if (d)
        closedir (d);
    return last;
}

long flow_last (const struct flow_run *r, const struct flow_step *s, long task, const char *file)
{
    char path[PATH_MAX];

    flow_path (path, r, s, task, NULL, 0);
    return last_number (path, file);
}

bool *flow_tasks_begun (const struct flow_run *r, const struct flow_step *s, long width)
{
    bool *begun = width > 0 ? calloc ((size_t)width, sizeof (*begun)) : NULL;
    char path[PATH_MAX];
    struct dirent *e;
    DIR *d = NULL;

    if (begun) {
        flow_path (path, r, s, -1, NULL, 0);
        d = open_folder (path);
    }
    while (d && (e = readdir (d))) {
        char *end;
        long task = strtol (e->d_name, &end, 10);
        if (end > e->d_name && !*end && task >= 0 && task < width)
            begun[task] = true;
    }
    if (d)
        closedir (d);
    return begun;
}

bool flow_is_stopped (const struct flow_run *r)
{
    return last_number (r->dir, "stop") > last_number (r->dir, "resume");
}

int flow_mark (const struct flow_run *r, bool stop, struct slurmdl_error *err)
{
    long n = last_number (r->dir, "stop");
    char path[PATH_MAX];

    if (stop == flow_is_stopped (r))
        return 0;
    snprintf (path, sizeof (path), "%s/%s.%ld", r->dir, stop ? "stop" : "resume", stop ? n + 1 : n);
    return publish_if_absent (path, "{}\n", 3, err) < 0 ? -1 : 0;
}
