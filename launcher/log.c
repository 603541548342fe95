/* SPDX-License-Identifier: Apache-2.0 */
/* Read and extend the decision log. */
#include "launcher/log.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "launcher/put.h"
#include "runtime/error.h"

enum { ENTRY_MAX = 16 << 20 };

struct log {
    char *dir;
    long length;
};

struct log *log_create (const char *dir, struct slurmdl_error *err)
{
    struct log *log = NULL;

    if (put_folder (dir, err) < 0)
        return NULL;
    if (!(log = calloc (1, sizeof (*log))) || !(log->dir = strdup (dir))) {
        errorf (err, "out of memory");
        log_destroy (log);
        return NULL;
    }
    return log;
}

void log_destroy (struct log *log)
{
    int e = errno;

    if (log) {
        free (log->dir);
        free (log);
    }
    errno = e;
}

long log_length (const struct log *log)
{
    return log->length;
}

static void entry_path (char *buf, size_t size, const struct log *log, long n)
{
    snprintf (buf, size, "%s/%08ld", log->dir, n);
}

/* A listing, because a network file system may answer a question for a name
 * from its memory for half a minute, but lists a folder afresh.
 */
static long newest_entry (const struct log *log, struct slurmdl_error *err)
{
    DIR *dir = opendir (log->dir);
    struct dirent *e;
    long newest = log->length;

    if (!dir)
        return errorf (err, "%s: %s", log->dir, strerror (errno));
    while ((e = readdir (dir))) {
        char *end;
        long n = strtol (e->d_name, &end, 10);
        if (e->d_name[0] != '.' && !*end && n > newest)
            newest = n;
    }
    closedir (dir);
    return newest;
}

/* The text without its last line if that line holds the text's checksum. */
static char *check_sum (char *text, size_t len)
{
    char *last = NULL;
    char want[64];

    if (len > 0 && text[len - 1] == '\n') {
        text[len - 1] = '\0';
        last = strrchr (text, '\n');
        text[len - 1] = '\n';
    }
    if (!last)
        return NULL;
    last++;
    snprintf (want,
              sizeof (want),
              "{\"xxh64\": \"%016llx\"}\n",
              (unsigned long long)XXH64 (text, (size_t)(last - text), 0));
    if (strcmp (last, want))
        return NULL;
    *last = '\0';
    return text;
}

static int damaged (struct slurmdl_error *err, const char *path)
{
    errno = EBADMSG;
    return errorf (err,
                   "%s: damaged (checksum or JSON is wrong): restore this file "
                   "from a backup",
                   path);
}

static int read_events (char *text,
                        const char *path,
                        log_event_f f,
                        void *arg,
                        struct slurmdl_error *err)
{
    char *save = NULL;
    int rv = 0;

    for (char *line = strtok_r (text, "\n", &save); line && rv == 0;
         line = strtok_r (NULL, "\n", &save)) {
        json_t *event = json_loads (line, 0, NULL);
        rv = json_is_object (event) ? f (event, arg, err) : damaged (err, path);
        json_decref (event);
    }
    return rv;
}

static int read_entry (struct log *log,
                       long n,
                       log_event_f f,
                       void *arg,
                       struct slurmdl_error *err)
{
    char path[PATH_MAX];
    size_t len;
    char *text;
    int rv;

    entry_path (path, sizeof (path), log, n);
    if (!(text = put_read (path, ENTRY_MAX, &len, err)))
        return -1;
    if (!check_sum (text, len))
        rv = damaged (err, path);
    else
        rv = read_events (text, path, f, arg, err);
    free (text);
    return rv;
}

int log_sync (struct log *log,
              log_event_f f,
              void *arg,
              struct slurmdl_error *err)
{
    long newest = newest_entry (log, err);
    int count = 0;

    if (newest < 0)
        return -1;
    while (log->length < newest) {
        if (read_entry (log, log->length + 1, f, arg, err) < 0)
            return -1;
        log->length++;
        count++;
    }
    return count;
}

static char *entry_text (json_t *events)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&text, &size);
    json_t *event;
    size_t i;

    if (!f)
        return NULL;
    json_array_foreach (events, i, event)
    {
        json_dumpf (event, f, JSON_COMPACT);
        fputc ('\n', f);
    }
    fflush (f);
    fprintf (f,
             "{\"xxh64\": \"%016llx\"}\n",
             (unsigned long long)XXH64 (text, size, 0));
    if (fclose (f) == 0)
        return text;
    free (text);
    return NULL;
}

int log_append (struct log *log, json_t *events, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char *text = entry_text (events);
    int rv;

    if (!text)
        return errorf (err, "out of memory");
    entry_path (path, sizeof (path), log, log->length + 1);
    rv = put_if_absent (path, text, strlen (text), err);
    free (text);
    return rv;
}
