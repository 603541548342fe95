/* SPDX-License-Identifier: Apache-2.0 */
/* The decision log: read and extend it, with its entries' text, folders and packs. */
#include "launcher/sweep/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/base/thread.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

/* ---- an entry's text ---- */

char *journal_entry_text (const struct event *events, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = xopen_memstream (&text, &size);

    for (size_t i = 0; i < n; i++) {
        json_t *o = event_json (&events[i]);
        json_dumpf (o, f, JSON_COMPACT);
        fputc ('\n', f);
        json_decref (o);
    }
    fflush (f);
    fprintf (f, "{\"xxh64\": \"%016llx\"}\n", (unsigned long long)XXH64 (text, size, 0));
    xclose_memstream (f);
    return text;
}

char *journal_entry_body (char *text, size_t len)
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
    snprintf (want, sizeof (want), "{\"xxh64\": \"%016llx\"}\n",
              (unsigned long long)XXH64 (text, (size_t)(last - text), 0));
    if (strcmp (last, want))
        return NULL;
    *last = '\0';
    return text;
}

/* ---- fsync a folder in a thread while the caller does something else ---- */

struct background_sync {
    pthread_t thread;
    atomic_uint asked;    /* number of syncs requested */
    atomic_uint answered; /* number of syncs done */
    atomic_bool closing;
    int fd;
    int error; /* errno of the last sync; 0: success */
};

static void *sync_entries (void *arg)
{
    struct background_sync *s = arg;
    unsigned done = 0;

    for (;;) {
        while (atomic_load (&s->asked) == done)
            futex_wait (&s->asked, done, -1);
        if (atomic_load (&s->closing))
            return NULL;
        s->error = link_sync_folder (s->fd) < 0 ? errno : 0;
        atomic_store (&s->answered, ++done);
        futex_wake (&s->answered);
    }
}

/* Returns NULL if no thread can be created. */
static struct background_sync *background_sync_create (void)
{
    struct background_sync *s = xcalloc (1, sizeof (*s));

    if (thread_start (&s->thread, sync_entries, s) == 0)
        return s;
    free (s);
    return NULL;
}

static void ask_sync_thread (struct background_sync *s)
{
    atomic_fetch_add (&s->asked, 1);
    futex_wake (&s->asked);
}

/* End each sync before you begin the next. */
static void background_sync_begin (struct background_sync *s, int fd)
{
    s->fd = fd;
    ask_sync_thread (s);
}

static int background_sync_end (struct background_sync *s)
{
    unsigned done;

    while ((done = atomic_load (&s->answered)) != atomic_load (&s->asked))
        futex_wait (&s->answered, done, -1);
    errno = s->error;
    return s->error ? -1 : 0;
}

static void background_sync_destroy (struct background_sync *s)
{
    if (!s)
        return;
    background_sync_end (s);
    atomic_store (&s->closing, true);
    ask_sync_thread (s);
    pthread_join (s->thread, NULL);
    free (s);
}

/* ---- the folder that entries are put into ---- */

/* The folder stays open from one entry to the next. */
struct entry_folder {
    int fd; /* -1: none is open */
    char name[24];
    bool unsynced;                     /* a name in it has yet to be fsynced */
    bool defers;                       /* entry_put() does not fsync */
    bool begun;                        /* its fsync has begun */
    struct background_sync *sync;      /* NULL: not needed yet */
    const struct publish_after *after; /* of each entry, or NULL */
};

static int sync_folder (struct entry_folder *f)
{
    bool begun = f->begun;

    f->begun = false;
    return begun ? background_sync_end (f->sync) : link_sync_folder (f->fd);
}

/* fsync the names of the new entries. */
static int entry_fsync (struct entry_folder *f, struct slurmdl_error *err)
{
    if (f->unsynced && sync_folder (f) < 0)
        return errorf (err, "log/%s: cannot sync: %s", f->name, strerror (errno));
    f->unsynced = false;
    return 0;
}

/* Begin the fsync in the background. */
static void entry_begin_fsync (struct entry_folder *f)
{
    if (!f->unsynced || f->begun)
        return;
    if (!f->sync)
        f->sync = background_sync_create ();
    if (f->sync) {
        background_sync_begin (f->sync, f->fd);
        f->begun = true;
    }
}

/* Close the folder, if it is open. */
static void entry_close (struct entry_folder *f)
{
    int e = errno; /* keep the reason, because callers wait if the disk is full */

    background_sync_destroy (f->sync);
    f->sync = NULL;
    f->begun = false;
    errno = e;
    f->fd = inside_close (f->fd, -1);
}

/* Create the folder and fsync its parent, so that the folder lasts as long as the names in it. */
static int create_entry_folder (const char *path, struct slurmdl_error *err)
{
    int parent;
    int rv;

    if (folder_create (path, err) < 0)
        return -1;
    parent = inside_parent (path, NULL);
    rv = parent < 0 ? -1 : link_sync_folder (parent);
    if (rv < 0)
        errorf (err, "%s: cannot sync: %s", path, inside_error (errno));
    return inside_close (parent, rv);
}

static int open_entry_folder (struct entry_folder *f, const char *path, bool new,
                              struct slurmdl_error *err)
{
    const char *name = strrchr (path, '/') + 1;

    if (f->fd >= 0 && !strcmp (f->name, name))
        return 0;
    if (entry_fsync (f, err) < 0)
        return -1;
    entry_close (f);
    if (new &&create_entry_folder (path, err) < 0)
        return -1;
    snprintf (f->name, sizeof (f->name), "%s", name);
    f->fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    return f->fd < 0 ? errorf (err, "%s: cannot write: %s", path, inside_error (errno)) : 0;
}

static void begin_after (void *folder)
{
    const struct entry_folder *f = folder;

    if (f->after)
        f->after->begin (f->after->arg);
}

/* fsync the previous entry first, or a crash could leave a gap. */
static int end_after (void *folder, struct slurmdl_error *err)
{
    struct entry_folder *f = folder;

    if (entry_fsync (f, err) < 0)
        return -1;
    return f->after ? f->after->end (f->after->arg, err) : 0;
}

static int publish_entry (struct entry_folder *f, const char *folder, bool new, const char *path,
                          const char *text, struct slurmdl_error *err)
{
    const struct publish_after after = { begin_after, end_after, f };

    if (open_entry_folder (f, folder, new, err) < 0)
        return -1;
    return publish_unsynced_at (f->fd, path, text, strlen (text), &after, err);
}

/* Put the entry 'path' into 'folder', which is created if it is 'new'.  Returns as
 * publish_if_absent().
 */
static int entry_put (struct entry_folder *f, const char *folder, bool new, const char *path,
                      const char *text, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    bool kept = f->fd >= 0;
    int rv = publish_entry (f, folder, new, path, text, &why);

    /* a descriptor opened long ago may be stale by now */
    if (rv < 0 && kept && !f->unsynced && (errno == ESTALE || errno == ENOENT)) {
        entry_close (f);
        why = (struct slurmdl_error){ "" };
        rv = publish_entry (f, folder, new, path, text, &why);
    }
    if (rv == 0) {
        f->unsynced = true;
        rv = f->defers ? 0 : entry_fsync (f, &why);
    }
    if (rv < 0) {
        errorf (err, "%s", why.text);
        if (!f->unsynced)
            entry_close (f);
    }
    return rv;
}

/* ---- a full block's events in one file ---- */

enum { PACK_MAX = 1 << 30 };

struct pack_header {
    char magic[8];
    uint64_t layout; /* also reveals the byte order */
    uint64_t size;   /* of the events */
    uint64_t sum;    /* XXH64 of them */
};

static const char pack_magic[8] = "DLPACK01";

struct pack {
    char *text;
    size_t size;
    size_t at;
};

/* Write a file with these events unless it exists.  A failure is harmless, because the entries
 * exist. */
static void pack_publish (const char *path, const struct packed *events)
{
    struct pack_header h = { .layout = event_layout (),
                             .size = events->size,
                             .sum = XXH64 (events->data, events->size, 0) };
    char *text;

    if (access (path, F_OK) == 0)
        return;
    text = xmalloc (sizeof (h) + events->size);
    memcpy (h.magic, pack_magic, sizeof (pack_magic));
    memcpy (text, &h, sizeof (h));
    memcpy (text + sizeof (h), events->data, events->size);
    publish_if_absent (path, text, sizeof (h) + events->size, NULL);
    free (text);
}

static bool pack_is_good (const struct pack *p)
{
    struct pack_header h;

    if (p->size < sizeof (h))
        return false;
    memcpy (&h, p->text, sizeof (h));
    return !memcmp (h.magic, pack_magic, sizeof (pack_magic)) && h.layout == event_layout ()
           && h.size == p->size - sizeof (h) && h.sum == XXH64 (p->text + sizeof (h), h.size, 0);
}

static void pack_close (struct pack *p);

/* Returns NULL if there is no such file, or it is damaged, or was written by another version of dl
 * or on another architecture.
 */
static struct pack *pack_open (const char *path)
{
    struct pack *p;

    /* file_read() would wait for a file that may well not exist */
    if (access (path, F_OK) < 0)
        return NULL;
    p = xcalloc (1, sizeof (*p));
    p->text = file_read (path, PACK_MAX, &p->size, NULL);
    p->at = sizeof (struct pack_header);
    if (p->text && pack_is_good (p))
        return p;
    pack_close (p);
    return NULL;
}

static void pack_close (struct pack *p)
{
    if (p)
        free (p->text);
    free (p);
}

/* As event_unpack(). */
static enum unpacked pack_next (struct pack *p, struct event *e)
{
    return event_unpack (p->text, p->size, &p->at, e);
}

/* ---- reading ---- */

enum { ENTRY_MAX = 16 << 20 };

struct log {
    char *dir;
    long length;
    long blocks;        /* folders seen so far */
    struct packed fill; /* events of the block being read ... */
    bool whole;         /* ... complete from its first entry on */
    bool attached;      /* the first sync is over */
    long mine;          /* the last entry that this process wrote */
    struct entry_folder put;
};

struct log *log_create (const char *dir, struct slurmdl_error *err)
{
    struct log *log;

    if (folder_create (dir, err) < 0)
        return NULL;
    log = xcalloc (1, sizeof (*log));
    log->put.fd = -1;
    log->dir = xstrdup (dir);
    return log;
}

void log_destroy (struct log *log)
{
    int e = errno;

    if (log) {
        entry_fsync (&log->put, NULL);
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

/* The block of the entry that follows 'n' others. */
static long block_of_entry (long n)
{
    return n / LOG_BLOCK;
}

static void block_path (char *buf, size_t size, const struct log *log, long block)
{
    snprintf (buf, size, "%s/%06ld", log->dir, block);
}

static void path_of_entry (char *buf, size_t size, const struct log *log, long n)
{
    snprintf (buf, size, "%s/%06ld/%08ld", log->dir, block_of_entry (n - 1), n);
}

/* Returns -1 if dl does not create such names. */
static long number_of_name (const char *name, int digits)
{
    long n = strtol (name, NULL, 10);
    char written[32];

    snprintf (written, sizeof (written), "%0*ld", digits, n);
    return n >= 0 && !strcmp (name, written) ? n : -1;
}

struct log_listing {
    long largest; /* largest number found, -1: none */
    long later;   /* how many are larger than 'after' */
};

/* Find the numbers that are names in a folder; of entries only those of 'block' (-1: any).  List
 * the folder instead of looking up names, because a network file system may answer lookups from a
 * cache for half a minute, but lists a folder afresh.
 */
static int list_numbers (const char *path, long block, long after, struct log_listing *l,
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
        long n = number_of_name (e->d_name, block < 0 ? 6 : 8);
        if (n < 0 || (block >= 0 && block_of_entry (n - 1) != block))
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

static int entry_damaged (struct slurmdl_error *err, const char *path)
{
    errno = EBADMSG;
    return errorf (err, "%s: damaged (checksum or JSON is wrong): restore this file from a backup",
                   path);
}

/* Use nothing of an entry that dl would not write: another user may have written it. */
static int entry_unfit (struct slurmdl_error *err, const char *path, const char *member)
{
    errno = EBADMSG;
    return errorf (err,
                   "%s: the value of \"%s\" is not one that dl writes: somebody else wrote this "
                   "entry; it is ignored",
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
        rv = entry_damaged (err, r->path);
    else if (event_read (json, &e) < 0) {
        rv = errorf (err, "%s: an event of a newer version of dl", r->path);
        errno = EBADMSG;
    } else {
        rv = (member = event_unfit (&e)) ? entry_unfit (err, r->path, member)
                                         : r->f (&e, r->arg, err);
        if (rv == 0 && r->log->whole)
            event_pack (&r->log->fill, &e);
        event_free (&e);
    }
    json_decref (json);
    return rv;
}

/* A later entry exists, but the folder does not list this one. */
static int entry_missing (struct slurmdl_error *err, const char *path)
{
    errno = EBADMSG;
    return errorf (err, "%s: missing, but later entries exist: restore this file from a backup",
                   path);
}

static int read_log_entry (const struct entry_reading *r, long n, struct slurmdl_error *err)
{
    struct entry_reading with = *r;
    struct slurmdl_error why = { "" };
    char path[PATH_MAX];
    char *save = NULL;
    size_t len;
    char *text;
    int rv = 0;

    path_of_entry (path, sizeof (path), r->log, n);
    with.path = path;
    text = r->gap ? file_read_now (path, ENTRY_MAX, &len, NULL, &why)
                  : file_read (path, ENTRY_MAX, &len, &why);
    if (!text)
        return errno == ENOENT ? entry_missing (err, path) : errorf (err, "%s", why.text);
    if (!journal_entry_body (text, len))
        rv = entry_damaged (err, path);
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

/* The block is full: write its events to a pack.  The process that wrote the last entry does it, or
 * one that had to read them all.
 */
static void keep_block (struct log *log)
{
    char path[PATH_MAX];

    if (log->whole && (!log->attached || log->mine == log->length)) {
        pack_path (path, sizeof (path), log, block_of_entry (log->length - 1));
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
        if (read_log_entry (r, log->length + 1, err) < 0)
            return -1;
        end_entry (log);
        count++;
    }
    return count;
}

/* Returns the number of entries, 0 if there is no valid pack, -1. */
static int read_pack (const struct entry_reading *r, long block, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct event e;
    const char *member = NULL;
    struct pack *pack;
    enum unpacked unpacked;
    int rv = 0;

    pack_path (path, sizeof (path), r->log, block);
    if (!(pack = pack_open (path)))
        return 0;
    while (rv == 0 && (unpacked = pack_next (pack, &e)) == UNPACK_EVENT) {
        rv = (member = event_unfit (&e)) ? entry_unfit (err, path, member) : r->f (&e, r->arg, err);
        json_decref (e.json);
    }
    pack_close (pack);
    if (rv < 0 || unpacked == UNPACK_INVALID)
        return member ? -1 : errorf (err, "%s: cannot be replayed", path);
    r->log->length += LOG_BLOCK;
    return LOG_BLOCK;
}

/* Milliseconds before listing a folder again that lacks an entry; the later delays are for
 * processes that follow the log, where no user waits for an answer.
 */
static const long look_delays[] = { 0, 20, 80, 500, 900, 900, 900, 900 };
enum { LOOKS_FIRST = 3, LOOKS = sizeof (look_delays) / sizeof (*look_delays) };

/* The newest entry of the block, and whether one before it is missing in the folder.  An entry may
 * have been created during the listing; the next listing has it.
 */
static int list_block (const struct log *log, long block, long *newest, bool *gap,
                       struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct log_listing l;

    block_path (path, sizeof (path), log, block);
    *newest = -1;
    for (int i = 0; i < (log->attached ? LOOKS : LOOKS_FIRST); i++) {
        if (look_delays[i] > 0)
            nanosleep (&(struct timespec){ 0, look_delays[i] * 1000000 }, NULL);
        if (list_numbers (path, block, log->length, &l, err) < 0)
            return -1;
        /* the first listing says how far to read, or other writers could keep us here forever */
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

/* Look for a new folder once the last one is full. */
static int look_for_blocks (struct log *log, struct slurmdl_error *err)
{
    struct log_listing l;

    if (log->length < log->blocks * LOG_BLOCK)
        return 0;
    if (list_numbers (log->dir, -1, -1, &l, err) < 0)
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
        if (block_of_entry (log->length) < log->blocks)
            n = read_block (&r, block_of_entry (log->length), err);
        if (n < 0)
            return -1;
    } while (n > 0 && log->length % LOG_BLOCK == 0);
    log->attached = true;
    return (int)(log->length - start);
}

/* ---- writing ---- */

static int put_next_entry (struct log *log, const char *text, struct slurmdl_error *err)
{
    long block = block_of_entry (log->length);
    char folder[PATH_MAX];
    char path[PATH_MAX];

    block_path (folder, sizeof (folder), log, block);
    path_of_entry (path, sizeof (path), log, log->length + 1);
    return entry_put (&log->put, folder, block >= log->blocks, path, text, err);
}

enum published log_append (struct log *log, const struct event *events, size_t n,
                           struct slurmdl_error *err)
{
    char *text = journal_entry_text (events, n);
    int rv;

    rv = put_next_entry (log, text, err);
    free (text);
    if (rv != 0)
        return rv;
    log->mine = log->length + 1;
    if (block_of_entry (log->length) >= log->blocks)
        log->blocks = block_of_entry (log->length) + 1;
    begin_entry (log);
    for (size_t i = 0; i < n && log->whole; i++)
        event_pack (&log->fill, &events[i]);
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

int log_fsync (struct log *log, struct slurmdl_error *err)
{
    return entry_fsync (&log->put, err);
}

void log_begin_fsync (struct log *log)
{
    entry_begin_fsync (&log->put);
}

void log_confirm (const struct log *log)
{
    char path[PATH_MAX];
    int fd;

    if (log->length == 0)
        return;
    block_path (path, sizeof (path), log, block_of_entry (log->length - 1));
    if ((fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL)) >= 0)
        link_sync_folder (fd);
    inside_close (fd, 0);
}

bool log_is_mine (const struct log *log)
{
    return log->mine > 0 && log->mine == log->length;
}
