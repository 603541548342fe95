/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the decision log as JSON and in packed form, from one table. */
#include "launcher/sweep/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/strings.h"
#include "runtime/base/array.h"

#define DIGITS "0123456789"
#define HEX    DIGITS "abcdef"

enum type { TEXT, REASON, INT, REAL, REALS, FLAG, HPARAMS, JSON };

struct event_member {
    const char *name;
    enum type type;
    size_t offset;
    uint32_t ops;                     /* mask of the kinds that have it */
    bool (*fits) (const char *value); /* checks what dl puts into a command or path; or NULL */
};

static const char *const event_names[EVENT_OPS] = {
    [EVENT_CREATE] = "create",   [EVENT_BEGIN] = "begin",       [EVENT_REPORT] = "report",
    [EVENT_RESULT] = "result",   [EVENT_FAIL] = "fail",         [EVENT_LOST] = "lost",
    [EVENT_PARK] = "park",       [EVENT_REJECT] = "reject",     [EVENT_EXIT] = "exit",
    [EVENT_PAUSE] = "pause",     [EVENT_RESUME] = "resume",     [EVENT_STOP] = "stop",
    [EVENT_KILL] = "kill",       [EVENT_CONTINUE] = "continue", [EVENT_RETRY] = "retry",
    [EVENT_EXPIRE] = "expire",   [EVENT_END] = "end",           [EVENT_SUBMIT] = "submit",
    [EVENT_SCALE] = "scale",     [EVENT_EXCLUDE] = "exclude",   [EVENT_LABEL] = "label",
    [EVENT_ARCHIVE] = "archive", [EVENT_START] = "start",       [EVENT_DONE] = "done",
};

/* ---- valid texts ---- */

/* A job or array of Slurm: "12", "12_3" or "12;cluster"; or "" if not known. */
static bool is_job_id (const char *text)
{
    const char *c = text + strspn (text, DIGITS);

    if (*c == '_' && c > text)
        c += 1 + strspn (c + 1, DIGITS);
    if (*c == ';' && c > text && word_fits (c + 1))
        return true;
    return !*c && (!*text || c[-1] != '_');
}

/* The name of a node, the nonce of a worker or the like; or "" if not known. */
static bool member_is_word (const char *text)
{
    return !*text || word_fits (text);
}

/* The id of an experiment, which names a folder among each user's records. */
static bool is_id (const char *text)
{
    return strlen (text) == 32 && !text[strspn (text, HEX)];
}

/* Words such as slots or jobs, separated by spaces. */
static bool is_words (const char *text)
{
    char word[WORD_SIZE];

    for (text += strspn (text, " "); *text; text += strspn (text, " ")) {
        size_t n = strcspn (text, " ");
        if (n >= sizeof (word))
            return false;
        snprintf (word, sizeof (word), "%.*s", (int)n, text);
        if (!word_fits (word))
            return false;
        text += n;
    }
    return true;
}

/* ---- the table ---- */

#define AT(field) offsetof (struct event, field)
#define OP(name)  (1u << EVENT_##name)
#define ALL       (~0u)
#define ENDS      (OP (RESULT) | OP (FAIL) | OP (PARK) | OP (REJECT))
#define TRIES     (ENDS | OP (REPORT) | OP (LOST))
/* In the log of a flow: events of tasks and of steps. */
#define TASKS (OP (BEGIN) | OP (FAIL) | OP (PARK) | OP (DONE))
#define STEPS (TASKS | OP (START) | OP (SUBMIT))

/* In the order in which an entry lists them. */
/* clang-format off */
static const struct event_member event_members[] = {
    { "time",        REAL,    AT (time),        ALL },
    { "by",          TEXT,    AT (by),          ALL },
    { "step",        TEXT,    AT (step),        STEPS, member_is_word },
    { "task",        INT,     AT (task),        TASKS },
    { "start",       INT,     AT (start),       STEPS },
    { "mode",        TEXT,    AT (mode),        OP (START) },
    { "version",     INT,     AT (version),     OP (CREATE) },
    { "name",        TEXT,    AT (name),        OP (CREATE) },
    { "dir",         TEXT,    AT (dir),         OP (CREATE) },
    { "seed",        INT,     AT (seed),        OP (CREATE) },
    { "known",       JSON,    AT (json),        OP (CREATE) },
    { "source",      TEXT,    AT (source),      OP (CREATE) },
    { "id",          TEXT,    AT (id),          OP (CREATE), is_id },
    { "digest",      TEXT,    AT (digest),      OP (CREATE), member_is_word },
    { "code",        TEXT,    AT (code),        OP (CREATE) | OP (RESUME), member_is_word },
    { "root",        TEXT,    AT (root),        OP (CREATE) },
    { "provenance",  TEXT,    AT (provenance),  OP (CREATE), member_is_word },
    { "trial",       INT,     AT (trial),       TRIES | OP (BEGIN) | OP (EXIT) | OP (RETRY) | OP (PAUSE) },
    { "attempt",     INT,     AT (attempt),     TRIES | OP (PAUSE) | TASKS },
    { "length",      INT,     AT (length),      OP (BEGIN) | OP (REPORT) | OP (RESULT) },
    { "metric",      REAL,    AT (metric),      OP (REPORT) | OP (RESULT) },
    { "metrics",     REALS,   AT (metrics),     OP (RESULT) },
    { "stopped",     FLAG,    AT (stopped),     OP (RESULT) },
    { "ended",       INT,     AT (ended),       OP (RESULT) },
    { "seconds",     REAL,    AT (seconds),     ENDS | OP (LOST) },
    { "free",        FLAG,    AT (free),        OP (FAIL) },
    { "progress",    FLAG,    AT (progress),    OP (FAIL) | OP (LOST) },
    { "host",        TEXT,    AT (host),        TRIES | OP (EXCLUDE) | OP (START) | OP (BEGIN), member_is_word },
    { "pid",         INT,     AT (pid),         OP (START) | OP (BEGIN) },
    { "began",       INT,     AT (began),       OP (START) },
    { "gpus",        TEXT,    AT (gpus),        ENDS },
    { "owner",       TEXT,    AT (owner),       OP (BEGIN), member_is_word },
    { "from",        INT,     AT (from),        OP (BEGIN) | OP (CREATE) },
    { "from_length", INT,     AT (from_length), OP (BEGIN) | OP (CREATE) },
    { "x",           REALS,   AT (x),           OP (BEGIN) | OP (FAIL) },
    { "hparams",     HPARAMS, AT (hparams),     OP (BEGIN) | OP (FAIL) },
    { "memory",      INT,     AT (memory),      OP (FAIL) | OP (EXIT) | OP (SUBMIT) },
    { "max_trials",  INT,     AT (max_trials),  OP (CONTINUE) },
    { "max_length",  INT,     AT (max_length),  OP (CONTINUE) },
    { "job",         TEXT,    AT (job),         OP (SUBMIT) | OP (BEGIN), is_job_id },
    { "jobs",        TEXT,    AT (jobs),        OP (START), is_words },
    { "first",       INT,     AT (first),       OP (SUBMIT) },
    { "last",        INT,     AT (last),        OP (SUBMIT) },
    { "workers",     INT,     AT (workers),     OP (SCALE) },
    { "slots",       TEXT,    AT (slots),       OP (SCALE), is_words },
    { "label",       TEXT,    AT (label),       OP (LABEL) },
    { "off",         FLAG,    AT (off),         OP (LABEL) | OP (ARCHIVE) | OP (EXCLUDE) },
    { "state",       TEXT,    AT (state),       OP (END) | OP (DONE) },
    { "status",      INT,     AT (status),      OP (FAIL) | OP (PARK) },
    { "cause",       REASON,  AT (cause),       OP (RESULT) | OP (FAIL) | OP (LOST) | OP (PARK) | OP (EXIT) | OP (PAUSE) },
    { "why",         TEXT,    AT (why),         ENDS | OP (LOST) | OP (EXIT) | OP (EXCLUDE) | OP (PAUSE) | OP (DONE) },
    { "left",        JSON,    AT (json),        OP (DONE) },
};
/* clang-format on */
enum { MEMBERS = sizeof (event_members) / sizeof (*event_members) };

const char *event_name (enum event_op op)
{
    return event_names[op];
}

double event_clock (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)(ts.tv_nsec / 1000000) / 1000;
}

struct event event_now (struct event e)
{
    e.time = event_clock ();
    return e;
}

static bool op_has_member (enum event_op op, const struct event_member *m)
{
    return m->ops >> op & 1;
}

static void *member_at (const struct event *e, const struct event_member *m)
{
    return (char *)e + m->offset;
}

/* In struct event, the length of a list follows the pointer to it. */
static size_t *count_of_member (const struct event *e, const struct event_member *m)
{
    return (size_t *)(void *)((char *)member_at (e, m) + sizeof (double *));
}

/* ---- JSON ---- */

/* NULL if the event does not set the member. */
static json_t *member_json (const struct event *e, const struct event_member *m)
{
    const void *p = member_at (e, m);

    switch (m->type) {
    case TEXT:
        return *(char *const *)p ? json_string (*(char *const *)p) : NULL;
    case REASON:
        return json_string (condition_reason_word (*(const enum condition_reason *)p));
    case INT:
        return *(const int64_t *)p ? json_integer (*(const int64_t *)p) : NULL;
    case REAL:
        return number_to_json (*(const double *)p);
    case REALS:
        return *count_of_member (e, m)
                   ? numbers_to_json (*(double *const *)p, *count_of_member (e, m))
                   : NULL;
    case FLAG:
        return *(const bool *)p ? json_true () : NULL;
    case HPARAMS:
    case JSON:
        return json_incref (*(json_t *const *)p);
    }
    return NULL;
}

json_t *event_json (const struct event *e)
{
    json_t *o = json_object ();
    json_t *v;

    json_object_set_new (o, "op", json_string (event_names[e->op]));
    for (int i = 0; i < MEMBERS; i++)
        if (op_has_member (e->op, &event_members[i]) && (v = member_json (e, &event_members[i])))
            json_object_set_new (o, event_members[i].name, v);
    return o;
}

static void read_reals (const json_t *v, struct event *e, const struct event_member *m)
{
    size_t n = json_array_size (v);
    double *list = n ? xcalloc (n, sizeof (*list)) : NULL;

    for (size_t i = 0; i < n; i++)
        list[i] = number_from_json (json_array_get (v, i));
    *(double **)member_at (e, m) = list;
    *count_of_member (e, m) = n;
}

static void read_event_member (const json_t *v, struct event *e, const struct event_member *m)
{
    void *p = member_at (e, m);

    switch (m->type) {
    case TEXT:
        *(const char **)p = json_string_value (v);
        break;
    case REASON:
        *(enum condition_reason *)p = condition_reason_read (json_string_value (v));
        break;
    case INT:
        *(int64_t *)p = json_integer_value (v);
        break;
    case REAL:
        *(double *)p = number_from_json (v);
        break;
    case REALS:
        read_reals (v, e, m);
        break;
    case FLAG:
        *(bool *)p = json_is_true (v);
        break;
    case HPARAMS:
        break;
    case JSON:
        *(json_t **)p = json_incref ((json_t *)v);
    }
}

int event_read (const json_t *json, struct event *e)
{
    const char *op = json_string_value (json_object_get (json, "op"));

    *e = (struct event){ .op = 0 };
    while (op && e->op < EVENT_OPS && strcmp (event_names[e->op], op))
        e->op++;
    if (!op || e->op == EVENT_OPS) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < MEMBERS; i++) {
        const json_t *v = json_object_get (json, event_members[i].name);
        if (op_has_member (e->op, &event_members[i]))
            read_event_member (v, e, &event_members[i]);
    }
    return 0;
}

/* The member that a first entry lacks, or NULL.  Without these members, nobody could tell whether
 * the entry was replaced.
 */
static const char *create_lacks (const struct event *e)
{
    if (!e->id || !e->digest)
        return e->id ? "digest" : "id";
    return !e->code != !e->root ? "root" : NULL;
}

const char *event_unfit (const struct event *e)
{
    for (int i = 0; i < MEMBERS; i++) {
        const char *text;
        if (!event_members[i].fits || !op_has_member (e->op, &event_members[i]))
            continue;
        text = *(char *const *)member_at (e, &event_members[i]);
        if (text && !event_members[i].fits (text))
            return event_members[i].name;
    }
    return e->op == EVENT_CREATE ? create_lacks (e) : NULL;
}

void event_free (struct event *e)
{
    free (e->x);
    free (e->metrics);
    json_decref (e->json);
    e->x = e->metrics = NULL;
    e->json = NULL;
}

/* ---- packed ---- */

static void pack_bytes (struct packed *p, const void *data, size_t size)
{
    size_t padded = (size + 7) & ~(size_t)7;

    if (array_reserve (&p->data, &p->capacity, p->size, padded, 1) < 0)
        out_of_memory ();
    memset (p->data + p->size, 0, padded);
    if (size)
        memcpy (p->data + p->size, data, size);
    p->size += padded;
}

/* Append the size and that many bytes.  The size of a text includes its NUL. */
static void pack_counted (struct packed *p, const void *data, uint64_t size)
{
    pack_bytes (p, &size, sizeof (size));
    pack_bytes (p, data, size);
}

static void pack_member (struct packed *p, const struct event *e, const struct event_member *m)
{
    const void *from = member_at (e, m);
    const char *text;
    char *known;

    switch (m->type) {
    case TEXT:
    case REASON:
        text = m->type == REASON ? condition_reason_word (*(const enum condition_reason *)from)
                                 : *(char *const *)from;
        pack_counted (p, text, text ? strlen (text) + 1 : 0);
        break;
    case INT:
        pack_bytes (p, from, sizeof (int64_t));
        break;
    case REAL:
        pack_bytes (p, from, sizeof (double));
        break;
    case REALS:
        pack_counted (p, *(double *const *)from, *count_of_member (e, m) * sizeof (double));
        break;
    case FLAG:
        pack_bytes (p, from, sizeof (bool));
        break;
    case HPARAMS:
        break;
    case JSON:
        known = json_dumps (e->json, JSON_COMPACT);
        pack_counted (p, known, known ? strlen (known) + 1 : 0);
        free (known);
        break;
    }
}

void event_pack (struct packed *p, const struct event *e)
{
    uint64_t op = e->op;

    pack_bytes (p, &op, sizeof (op));
    for (int i = 0; i < MEMBERS; i++)
        if (op_has_member (e->op, &event_members[i]))
            pack_member (p, e, &event_members[i]);
}

void packed_free (struct packed *p)
{
    free (p->data);
    *p = (struct packed){ NULL };
}

struct pack_cursor {
    const char *data;
    size_t size, at;
    bool bad;
};

static const char *take_aligned (struct pack_cursor *c, size_t size)
{
    const char *p = c->data + c->at;
    size_t padded = (size + 7) & ~(size_t)7;

    if (padded < size || padded > c->size - c->at) {
        c->bad = true;
        return NULL;
    }
    c->at += padded;
    return p;
}

static uint64_t take_packed_word (struct pack_cursor *c)
{
    const char *p = take_aligned (c, sizeof (uint64_t));
    uint64_t v = 0;

    if (p)
        memcpy (&v, p, sizeof (v));
    return v;
}

static const char *unpack_bytes (struct pack_cursor *c, size_t *size)
{
    *size = take_packed_word (c);
    return *size && !c->bad ? take_aligned (c, *size) : NULL;
}

static void unpack_member (struct pack_cursor *c, struct event *e, const struct event_member *m)
{
    void *to = member_at (e, m);
    const char *bytes;
    uint64_t word;
    size_t n;

    switch (m->type) {
    case TEXT:
        bytes = unpack_bytes (c, &n);
        c->bad |= bytes && bytes[n - 1];
        *(const char **)to = c->bad ? NULL : bytes;
        break;
    case REASON:
        bytes = unpack_bytes (c, &n);
        c->bad |= bytes && bytes[n - 1];
        *(enum condition_reason *)to = condition_reason_read (c->bad ? NULL : bytes);
        break;
    case INT:
    case REAL:
        word = take_packed_word (c);
        memcpy (to, &word, sizeof (word));
        break;
    case REALS:
        *(const void **)to = unpack_bytes (c, &n);
        *count_of_member (e, m) = n / sizeof (double);
        break;
    case FLAG:
        *(bool *)to = take_packed_word (c) & 1;
        break;
    case HPARAMS:
        break;
    case JSON:
        bytes = unpack_bytes (c, &n);
        c->bad |= bytes && bytes[n - 1];
        *(json_t **)to = bytes && !c->bad ? json_loads (bytes, 0, NULL) : NULL;
    }
}

enum unpacked event_unpack (const char *data, size_t size, size_t *where, struct event *e)
{
    struct pack_cursor c = { data, size, *where, false };
    uint64_t op;

    if (*where == size)
        return UNPACK_END;
    op = take_packed_word (&c);
    *e = (struct event){ .op = (enum event_op)op };
    for (int i = 0; i < MEMBERS && !c.bad && op < EVENT_OPS; i++)
        if (op_has_member (e->op, &event_members[i]))
            unpack_member (&c, e, &event_members[i]);
    *where = c.at;
    if (!c.bad && op < EVENT_OPS)
        return UNPACK_EVENT;
    errno = EINVAL;
    return UNPACK_INVALID;
}

uint64_t event_layout (void)
{
    uint64_t hash = XXH64 (&(uint16_t){ 1 }, sizeof (uint16_t), EVENT_OPS);

    for (int i = 0; i < MEMBERS; i++) {
        uint32_t what[2] = { (uint32_t)event_members[i].type, event_members[i].ops };
        hash = XXH64 (event_members[i].name, strlen (event_members[i].name), hash);
        hash = XXH64 (what, sizeof (what), hash);
    }
    return hash;
}
