/* SPDX-License-Identifier: Apache-2.0 */
/* Read and extend the decision log. */
#include "launcher/sweep/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/sweep/entry_folder.h"
#include "launcher/sweep/entry_text.h"
#include "launcher/sweep/segment_file.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

enum { ENTRY_MAX = 16 << 20 };

struct log {
    char *dir;
    long length;
    long blocks;        /* folders that were seen */
    struct packed fill; /* the events of the block that is being read ... */
    bool whole;         /* ... from its first entry on */
    bool attached;      /* the first sync is over */
    long mine;          /* number of the last entry that this process put */
    struct entry_folder put;
};

struct log *log_create (const char *dir, struct slurmdl_error *err)
{
    struct log *log = NULL;

    if (folder_create (dir, err) < 0)
        return NULL;
    if ((log = calloc (1, sizeof (*log))))
        log->put.fd = -1;
    if (!log || !(log->dir = strdup (dir))) {
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
        entry_settle (&log->put, NULL);
        entry_close (&log->put);
        packed_free (&log->fill);
        free (log->dir);
        free (log);
    }
    errno = e;
}

long log_length (const struct log *log)
{
    return log->length;
}

/* ---- names ---- */

/* Block of the entry after 'n' others. */
static long block_of (long n)
{
    return n / LOG_BLOCK;
}

static void block_path (char *buf, size_t size, const struct log *log, long block)
{
    snprintf (buf, size, "%s/%06ld", log->dir, block);
}

static void entry_path (char *buf, size_t size, const struct log *log, long n)
{
    snprintf (buf, size, "%s/%06ld/%08ld", log->dir, block_of (n - 1), n);
}

/* -1: dl gives no such name. */
static long number_of (const char *name, int digits)
{
    long n = strtol (name, NULL, 10);
    char written[32];

    snprintf (written, sizeof (written), "%0*ld", digits, n);
    return n >= 0 && !strcmp (name, written) ? n : -1;
}

struct log_listing {
    long largest; /* number that is a name, -1: none */
    long later;   /* how many are larger than 'after' */
};

/* The numbers that are names in a folder; of the entries' names those of
 * 'block' only (-1: any number).  A listing, because a
 * network file system may answer a question for a name from its memory for half
 * a minute, but lists a folder afresh.
 */
static int list (const char *path, long block, long after, struct log_listing *l,
                 struct slurmdl_error *err)
{
    int fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    struct dirent *e;

    *l = (struct log_listing){ .largest = -1 };
    if (!dir)
        return errorf (err, "%s: %s", path, inside_error (errno));
    errno = 0;
    while ((e = readdir (dir))) {
        long n = number_of (e->d_name, block < 0 ? 6 : 8);
        if (n < 0 || (block >= 0 && block_of (n - 1) != block))
            continue;
        l->largest = n > l->largest ? n : l->largest;
        l->later += n > after;
    }
    if (errno != 0)
        errorf (err, "%s: %s", path, strerror (errno));
    closedir (dir);
    return errno ? -1 : 0;
}

/* ---- one entry ---- */

static int damaged (struct slurmdl_error *err, const char *path)
{
    errno = EBADMSG;
    return errorf (err,
                   "%s: damaged (checksum or JSON is wrong): restore this file "
                   "from a backup",
                   path);
}

/* Nothing of it is used: the file may be another user's. */
static int unfit (struct slurmdl_error *err, const char *path, const char *member)
{
    errno = EBADMSG;
    return errorf (err,
                   "%s: the value of \"%s\" is not one that dl writes: "
                   "somebody else has put this entry; nothing of it is used",
                   path, member);
}

struct entry_reading {
    struct log *log;
    bool gap; /* an entry of the block is missing */
    const char *path;
    log_event_f f;
    void *arg;
};

static int read_event (const struct entry_reading *r, const char *line, struct slurmdl_error *err)
{
    json_t *json = json_loads (line, 0, NULL);
    const char *member;
    struct event e;
    int rv;

    if (!json_is_object (json))
        rv = damaged (err, r->path);
    else if (event_read (json, &e) < 0) {
        rv = errno == ENOMEM ? errorf (err, "out of memory")
                             : errorf (err, "%s: an event of a newer version of dl", r->path);
        errno = errno == ENOMEM ? ENOMEM : EBADMSG;
    } else {
        rv = (member = event_unfit (&e)) ? unfit (err, r->path, member) : r->f (&e, r->arg, err);
        if (rv == 0 && r->log->whole)
            r->log->whole = event_pack (&r->log->fill, &e) == 0;
        event_free (&e);
    }
    json_decref (json);
    return rv;
}

/* A later one was seen, and the folder does not list this one. */
static int missing (struct slurmdl_error *err, const char *path)
{
    errno = EBADMSG;
    return errorf (err,
                   "%s: missing, but later entries exist: restore this "
                   "file from a backup",
                   path);
}

static int read_entry (const struct entry_reading *r, long n, struct slurmdl_error *err)
{
    struct entry_reading with = *r;
    struct slurmdl_error why = { "" };
    char path[PATH_MAX];
    char *save = NULL;
    size_t len;
    char *text;
    int rv = 0;

    entry_path (path, sizeof (path), r->log, n);
    with.path = path;
    text = r->gap ? file_read_now (path, ENTRY_MAX, &len, NULL, &why)
                  : file_read (path, ENTRY_MAX, &len, &why);
    if (!text)
        return errno == ENOENT ? missing (err, path) : errorf (err, "%s", why.text);
    if (!journal_entry_body (text, len))
        rv = damaged (err, path);
    else
        for (char *line = strtok_r (text, "\n", &save); line && rv == 0;
             line = strtok_r (NULL, "\n", &save))
            rv = read_event (&with, line, err);
    free (text);
    return rv;
}

/* ---- a block ---- */

static void pack_path (char *buf, size_t size, const struct log *log, long block)
{
    snprintf (buf, size, "%s/%06ld.pack", log->dir, block);
}

/* The block is full: keep its events together.  One process does, that which
 * put the last entry, or one that had to read them all.
 */
static void keep_block (struct log *log)
{
    char path[PATH_MAX];

    if (log->whole && (!log->attached || log->mine == log->length)) {
        pack_path (path, sizeof (path), log, block_of (log->length - 1));
        pack_publish (path, &log->fill);
    }
}

static void begin_entry (struct log *log)
{
    if (log->length % LOG_BLOCK == 0) {
        log->fill.size = 0;
        log->whole = true;
    }
}

static void end_entry (struct log *log)
{
    log->length++;
    if (log->length % LOG_BLOCK == 0)
        keep_block (log);
}

static int read_singles (const struct entry_reading *r, long newest, struct slurmdl_error *err)
{
    struct log *log = r->log;
    int count = 0;

    while (log->length < newest) {
        begin_entry (log);
        if (read_entry (r, log->length + 1, err) < 0)
            return -1;
        end_entry (log);
        count++;
    }
    return count;
}

/* Returns the number of entries, 0 if there is no good pack, -1. */
static int read_pack (const struct entry_reading *r, long block, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct event e;
    const char *member = NULL;
    struct pack *pack;
    int rv;

    pack_path (path, sizeof (path), r->log, block);
    if (!(pack = pack_open (path)))
        return 0;
    while ((rv = pack_next (pack, &e)) == 1) {
        rv = (member = event_unfit (&e)) ? unfit (err, path, member) : r->f (&e, r->arg, err);
        json_decref (e.known);
        if (rv < 0)
            break;
    }
    pack_close (pack);
    if (rv < 0)
        return member ? -1 : errorf (err, "%s: cannot be replayed", path);
    r->log->length += LOG_BLOCK;
    return LOG_BLOCK;
}

/* Milliseconds before another look at a folder that lacks an entry; the later
 * ones are for who follows the log and has nobody who waits for an answer.
 */
static const long looks[] = { 0, 20, 80, 500, 900, 900, 900, 900 };
enum { LOOKS_FIRST = 3, LOOKS = sizeof (looks) / sizeof (*looks) };

/* The newest entry of the block, and whether one before it is not in the
 * folder.  That may be an entry that was put during the listing, and the next
 * one has it: no host's memory of a name is asked.
 */
static int list_block (const struct log *log, long block, long *newest, bool *gap,
                       struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct log_listing l;

    block_path (path, sizeof (path), log, block);
    *newest = -1;
    for (int i = 0; i < (log->attached ? LOOKS : LOOKS_FIRST); i++) {
        if (looks[i] > 0)
            nanosleep (&(struct timespec){ 0, looks[i] * 1000000 }, NULL);
        if (list (path, block, log->length, &l, err) < 0)
            return -1;
        /* the first says how far to read, so that nobody writes for ever */
        *newest = *newest < 0 ? l.largest : *newest;
        *gap = l.later < l.largest - log->length;
        if (!*gap)
            break;
    }
    return 0;
}

static int read_block (struct entry_reading *r, long block, struct slurmdl_error *err)
{
    struct log *log = r->log;
    long newest;
    int n = 0;

    if (log->length % LOG_BLOCK == 0 && block < log->blocks - 1)
        n = read_pack (r, block, err);
    if (n != 0)
        return n;
    if (list_block (log, block, &newest, &r->gap, err) < 0)
        return -1;
    return read_singles (r, newest, err);
}

/* A folder is made when the one before it is full. */
static int look_for_blocks (struct log *log, struct slurmdl_error *err)
{
    struct log_listing l;

    if (log->length < log->blocks * LOG_BLOCK)
        return 0;
    if (list (log->dir, -1, -1, &l, err) < 0)
        return -1;
    log->blocks = l.largest + 1;
    return 0;
}

int log_sync (struct log *log, log_event_f f, void *arg, struct slurmdl_error *err)
{
    struct entry_reading r = { .log = log, .f = f, .arg = arg };
    long start = log->length;
    int n;

    do {
        if (look_for_blocks (log, err) < 0)
            return -1;
        n = 0;
        if (block_of (log->length) < log->blocks)
            n = read_block (&r, block_of (log->length), err);
        if (n < 0)
            return -1;
    } while (n > 0 && log->length % LOG_BLOCK == 0);
    log->attached = true;
    return (int)(log->length - start);
}

/* ---- putting ---- */

static int put_entry (struct log *log, const char *text, struct slurmdl_error *err)
{
    long block = block_of (log->length);
    char folder[PATH_MAX];
    char path[PATH_MAX];

    block_path (folder, sizeof (folder), log, block);
    entry_path (path, sizeof (path), log, log->length + 1);
    return entry_put (&log->put, folder, block >= log->blocks, path, text, err);
}

int log_append (struct log *log, const struct event *events, size_t n, struct slurmdl_error *err)
{
    char *text = journal_entry_text (events, n);
    int rv;

    if (!text)
        return errorf (err, "out of memory");
    rv = put_entry (log, text, err);
    free (text);
    if (rv != 0)
        return rv;
    log->mine = log->length + 1;
    if (block_of (log->length) >= log->blocks)
        log->blocks = block_of (log->length) + 1;
    begin_entry (log);
    for (size_t i = 0; i < n && log->whole; i++)
        log->whole = event_pack (&log->fill, &events[i]) == 0;
    end_entry (log);
    return 0;
}

void log_put_after (struct log *log, const struct publish_after *after)
{
    log->put.after = after;
}

void log_defer (struct log *log, bool defers)
{
    log->put.defers = defers;
}

int log_settle (struct log *log, struct slurmdl_error *err)
{
    return entry_settle (&log->put, err);
}

void log_begin_to_settle (struct log *log)
{
    entry_begin_to_settle (&log->put);
}

void log_confirm (const struct log *log)
{
    char path[PATH_MAX];
    int fd;

    if (log->length == 0)
        return;
    block_path (path, sizeof (path), log, block_of (log->length - 1));
    if ((fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL)) >= 0)
        link_sync_folder (fd);
    inside_close (fd, 0);
}

bool log_is_mine (const struct log *log)
{
    return log->mine > 0 && log->mine == log->length;
}
