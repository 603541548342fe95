/* SPDX-License-Identifier: Apache-2.0 */
/* Write events as lines of JSON. */
#include "runtime/comm/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/engine/hash_map.h"

struct timeline {
    FILE *f;
    long rank;
    double start;
    bool cycles;
    bool some; /* whether there are events already */
    struct map rows;
    uintptr_t nrows;
    double flushed;
};

static int expand_rank (const char *path, long rank, char *out, size_t size)
{
    const char *mark = strstr (path, "%r");
    int n = mark ? snprintf (out, size, "%.*s%ld%s", (int)(mark - path), path, rank, mark + 2)
                 : snprintf (out, size, "%s", path);

    if (n >= 0 && (size_t)n < size)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

static void print_json_text (FILE *f, const char *text)
{
    fputc ('"', f);
    for (; *text; text++) {
        unsigned char ch = (unsigned char)*text;
        if (ch == '"' || ch == '\\')
            fprintf (f, "\\%c", ch);
        else if (ch < 32)
            fprintf (f, "\\u%04x", ch);
        else
            fputc (ch, f);
    }
    fputc ('"', f);
}

static void begin_phase (struct timeline *t, const char *phase, uintptr_t row)
{
    fprintf (t->f, "%s{\"ph\":\"%s\",\"pid\":%ld,\"tid\":%lu", t->some ? ",\n" : "[\n", phase,
             t->rank, (unsigned long)row);
    t->some = true;
}

static void print_phase (struct timeline *t, uintptr_t row, const char *what, const char *name)
{
    begin_phase (t, "M", row);
    fprintf (t->f, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    print_json_text (t->f, name);
    if (row == 0) {
        struct timespec now;
        clock_gettime (CLOCK_REALTIME, &now);
        fprintf (t->f, ",\"start_time_since_epoch_in_micros\":%lld",
                 (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    }
    fputs ("}}", t->f);
}

/* Others can guess the names of such files: follow no symbolic link, and do not
 * write into another user's file.
 */
static FILE *open_timeline_file (const char *name)
{
    int fd = open (name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    struct stat st;

    if (fd < 0)
        return NULL;
    if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && st.st_uid == geteuid ()
        && ftruncate (fd, 0) == 0)
        return fdopen (fd, "w");
    close (fd);
    errno = EPERM;
    return NULL;
}

int timeline_open (struct timeline **made, const char *path, long rank, const char *host,
                   bool cycles, struct slurmdl_error *err)
{
    char name[PATH_MAX], title[320];
    struct timeline *t;

    *made = NULL;
    if (rank && !strstr (path, "%r"))
        return 0;
    t = calloc (1, sizeof (*t));
    if (!t || expand_rank (path, rank, name, sizeof (name)) < 0
        || !(t->f = open_timeline_file (name))) {
        errorf (err, "%s: cannot be written: %s", path, strerror (errno));
        free (t);
        return -1;
    }
    t->rank = rank;
    t->start = monotonic ();
    t->cycles = cycles;
    snprintf (title, sizeof (title), "rank %ld (%s)", rank, host);
    print_phase (t, 0, "process_name", title);
    *made = t;
    return 0;
}

int timeline_close (struct timeline *t)
{
    int rv;

    if (!t)
        return 0;
    fputs ("\n]\n", t->f);
    rv = ferror (t->f) ? -1 : 0;
    rv |= fclose (t->f);
    map_free (&t->rows);
    free (t);
    return rv;
}

static uintptr_t timeline_row (struct timeline *t, const char *title)
{
    uint64_t hash = map_hash (title);
    uintptr_t row = (uintptr_t)map_get (&t->rows, hash);

    if (row)
        return row;
    row = ++t->nrows;
    map_set (&t->rows, hash, (void *)row);
    print_phase (t, row, "thread_name", title);
    return row;
}

/* Clip events that began before the timeline. */
static double micros (const struct timeline *t, double when)
{
    return when > t->start ? (when - t->start) * 1e6 : 0;
}

void timeline_cycle (struct timeline *t, double now)
{
    if (!t || !t->cycles)
        return;
    begin_phase (t, "i", 0);
    fprintf (t->f, ",\"name\":\"CYCLE_START\",\"ts\":%.3f,\"s\":\"g\"}", micros (t, now));
}

void timeline_span (struct timeline *t, const char *row, const char *event, double start,
                    double end, size_t bytes)
{
    uintptr_t id = timeline_row (t, row);

    begin_phase (t, "X", id);
    fprintf (t->f, ",\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f", event, micros (t, start),
             micros (t, end) - micros (t, start));
    if (bytes)
        fprintf (t->f, ",\"args\":{\"bytes\":%zu}", bytes);
    fputc ('}', t->f);
}

void timeline_flush (struct timeline *t)
{
    double now = monotonic ();

    if (now - t->flushed < 0.5)
        return;
    t->flushed = now;
    fflush (t->f);
}
