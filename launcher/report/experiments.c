/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a report: experiments, trials, attempts and their cost. */
#include "launcher/report/report.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"

const char *const attempt_ends[ATTEMPT_ENDS] = {
    "result", "failed", "rejected", "parked", "lost", "running",
};

enum trial_phase report_phase (const struct report *r, long trial)
{
    const struct report_trial *t = &r->trials[trial];

    return trial_phase_of (r->sweeps[t->sweep].s, t->of);
}

struct sweep_result report_result (const struct report *r, long trial, size_t metric)
{
    const struct report_sweep *of = &r->sweeps[r->trials[trial].sweep];
    const char *name = sweep_metric (r->sweeps[0].s, metric);
    long number = r->trials[trial].number;

    for (size_t i = 0; i < sweep_metrics (of->s); i++)
        if (!strcmp (sweep_metric (of->s, i), name))
            return point_result (of->s, trial_point (of->s, number), i);
    return (struct sweep_result){ .value = NAN, .deviation = NAN };
}

double report_value (const struct report *r, long trial, size_t metric)
{
    return report_result (r, trial, metric).value;
}

bool report_better (const struct report *r, double a, double b)
{
    return sweep_better (r->sweeps[0].s, a, b);
}

struct order_entry {
    double value;
    long trial;
    bool compared;
};

static int by_order (const void *a, const void *b)
{
    const struct order_entry *x = a, *y = b;

    if (x->compared != y->compared)
        return x->compared ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

long report_order (const struct report *r, long **list)
{
    struct order_entry *sorted = xmalloc (((size_t)r->n + 1) * sizeof (*sorted));
    bool smaller = r->sweeps[0].s->exp->search->config.smaller_is_better;
    long n = 0;

    *list = xmalloc (((size_t)r->n + 1) * sizeof (**list));
    for (long i = 0; i < r->n; i++) {
        struct sweep_result of = report_result (r, i, 0);
        if (isfinite (of.value))
            sorted[n++] = (struct order_entry){ smaller ? of.value : -of.value, i, of.compared };
    }
    qsort (sorted, (size_t)n, sizeof (*sorted), by_order);
    for (long i = 0; i < n; i++)
        (*list)[i] = sorted[i].trial;
    free (sorted);
    return n;
}

void report_free (struct report *r)
{
    free (r->sweeps);
    free (r->trials);
    free (r->attempts);
    free (r->results);
    free (r->lengths);
    free (r->requests);
    words_free (&r->slots);
    words_free (&r->causes);
    *r = (struct report){ 0 };
}

/* ---- read the experiments' logs ---- */

/* ---- attempts ---- */

enum { CLAIM_MAX = 64 << 10, CAUSE_MAX = 120 };

/* The open segment of a trial. */
struct report_segment {
    double begin; /* when the next attempt begins at the earliest */
    int64_t length;
    long over;      /* attempts that have ended */
    long first;     /* first attempt of the segment */
    char owner[33]; /* nonce of the worker that owns the segment */
    char slot[64];  /* of the worker that began it */
    bool open;
};

struct reading {
    struct report *r;
    size_t i; /* sweep */
    struct report_segment *segments;
    struct peer_info *peers;
    long npeers;
    double *until; /* for each slot, when its last attempt ended */
    size_t nuntil;
};

/* ---- the worker of an attempt ---- */

static const char *slot_of_nonce (const struct reading *g, const char *nonce)
{
    for (long i = 0; i < g->npeers; i++)
        if (!strcmp (g->peers[i].nonce, nonce))
            return g->peers[i].slot;
    return NULL;
}

static double since_start (const struct reading *g, double time)
{
    double t = time - g->r->sweeps[g->i].s->created;

    return t > 0 ? t : 0;
}

/* Find the slot of the worker that claimed an attempt, or "", and when; -1: unknown. */
static void claimed_by (const struct reading *g, long trial, long number, char slot[64],
                        double *time)
{
    char path[PATH_MAX];
    char *text;
    json_t *o;

    slot[0] = '\0';
    *time = -1;
    snprintf (path, sizeof (path), "%s/trials/%04ld/claim.%ld", g->r->sweeps[g->i].s->dir, trial,
              number);
    if (!(text = file_read_now (path, CLAIM_MAX, NULL, NULL, NULL)))
        return;
    if ((o = json_loads (text, 0, NULL))) {
        const char *name = json_string_value (json_object_get (o, "slot"));
        snprintf (slot, 64, "%s", name ? name : "");
        if (json_is_number (json_object_get (o, "time")))
            *time = since_start (g, json_number_value (json_object_get (o, "time")));
        json_decref (o);
    }
    free (text);
}

/* Return the slot of an attempt's worker, and set '*time' to when it claimed the attempt, or to -1
 * if no claim says so.
 */
static const char *worker_of (const struct reading *g, const struct report_segment *t, long trial,
                              long number, char slot[64], double *time)
{
    const char *found;

    *time = -1;
    if (number == t->first && t->owner[0])
        return (found = slot_of_nonce (g, t->owner)) ? found : t->slot;
    claimed_by (g, trial, number, slot, time);
    return slot[0] ? slot : t->slot;
}

static size_t slot_number (struct reading *g, const char *slot)
{
    const struct report *r = g->r;
    char name[256];
    size_t n;

    snprintf (name, sizeof (name), "%s%s%s", r->nsweeps > 1 ? r->sweeps[g->i].name : "",
              r->nsweeps > 1 ? " " : "", slot);
    if ((n = words_number (&g->r->slots, name)) >= g->nuntil) {
        g->until = xreallocarray (g->until, n + 16, sizeof (*g->until));
        while (g->nuntil < n + 16)
            g->until[g->nuntil++] = 0;
    }
    return n;
}

/* ---- the cause of a failure ---- */

/* Return the length of a measured number at 'p', which is one with a decimal point or a
 * unit, or 0.  Integers do not count, because an exit status, a line or a port
 * distinguishes causes.
 */
static size_t measured_number_length (const char *why, const char *p)
{
    static const char *const units[] = { " GiB", " MiB", " KiB", " bytes" };
    size_t n = strspn (p, "0123456789."), rest;

    for (size_t i = 0; n > 0 && i < sizeof (units) / sizeof (*units); i++)
        if (!strncmp (p + n, units[i], strlen (units[i])))
            return n;
    if (n < 3 || *p == '.' || !memchr (p, '.', n - 1) || strchr (p, '.') != memrchr (p, '.', n - 1)
        || (p > why && !strchr (" =(:,[-", p[-1])))
        return 0;
    n -= p[n - 1] == '.'; /* the point ends a sentence */
    rest = p[n] == 'e' ? 1 + strspn (p + n + 1, "+-") : 0;
    if (rest && strspn (p + n + rest, "0123456789"))
        n += rest + strspn (p + n + rest, "0123456789");
    return isalnum ((unsigned char)p[n]) || p[n] == '_' ? 0 : n;
}

/* Replace measured numbers and addresses by #, because they differ between failures
 * with the same cause.
 */
static size_t cause_number (struct report *r, const char *why)
{
    char cause[CAUSE_MAX + 1];
    size_t n = 0;
    const char *end = why ? strstr (why, "; exit status") : NULL; /* added by the trainer */
    const char *p = why ? why : "";

    while (*p && p != end && n < CAUSE_MAX - 3) {
        size_t hex = strspn (p, "0123456789abcdefABCDEFx");
        bool address = !strncmp (p, "0x", 2) || hex >= 16;
        size_t number = measured_number_length (why, p);
        if (address) {
            cause[n++] = '#';
            p += hex;
        } else if (number) {
            cause[n++] = '#';
            p += number;
        } else
            cause[n++] = *p++;
    }
    if (*p && p != end) {
        while (n > 0 && (cause[n - 1] & 0x80))
            n--; /* do not cut a character in half */
        memcpy (cause + n, "...", 3);
        n += 3;
    }
    cause[n] = '\0';
    return words_number (&r->causes, cause);
}

/* ---- lists ---- */

static void add_attempt_of_event (struct report *r, const struct report_attempt *a)
{
    XGROW (r->attempts, r->nattempts);
    r->attempts[r->nattempts++] = *a;
}

static void add_request_of_event (struct report *r, double time, enum event_op op)
{
    XGROW (r->requests, r->nrequests);
    r->requests[r->nrequests++] = (struct report_request){ time, event_name (op) };
}

/* ---- events ---- */

static void begin_segment (struct reading *g, const struct event *e)
{
    struct report_segment *t = &g->segments[e->trial - 1];

    t->begin = since_start (g, e->time);
    t->length = e->length;
    t->first = t->over + 1;
    t->open = true;
    snprintf (t->owner, sizeof (t->owner), "%s", e->owner ? e->owner : "");
    snprintf (t->slot, sizeof (t->slot), "%s", e->by ? e->by : "");
}

static void end_attempt_of_event (struct reading *g, const struct event *e, enum report_end how)
{
    struct report_segment *t = &g->segments[e->trial - 1];
    double end = since_start (g, e->time), claimed = -1;
    bool told = e->seconds > 0 && how != ATTEMPT_LOST;
    const char *worker;
    char slot[64];
    struct report_attempt a = {
        .trial = g->r->sweeps[g->i].first + (long)e->trial - 1,
        .number = (long)e->attempt,
        .length = t->length,
        .ready = t->begin,
        .end = end,
        .told = told,
        .reason = e->cause,
        .how = how,
    };

    worker = told ? e->by : worker_of (g, t, (long)e->trial, a.number, slot, &claimed);
    a.slot = slot_number (g, worker);
    a.cause = cause_number (g->r, how == ATTEMPT_RESULT ? "" : e->why);
    a.begin = told ? end - e->seconds : claimed >= 0 ? claimed : fmax (t->begin, g->until[a.slot]);
    a.begin = fmin (fmax (a.begin, 0), end);
    if (how == ATTEMPT_LOST && e->seconds > 0)
        a.end = fmin (end, a.begin + e->seconds);
    g->until[a.slot] = a.end;
    t->over = (long)e->attempt;
    t->begin = a.end;
    t->open = how != ATTEMPT_RESULT && how != ATTEMPT_REJECTED;
    add_attempt_of_event (g->r, &a);
}

/* Return the value of the report's metric, which may not be this experiment's first. */
static double event_value (const struct reading *g, const struct event *e)
{
    const struct sweep *s = g->r->sweeps[g->i].s;
    const char *name = sweep_metric (g->r->sweeps[0].s, 0);

    for (size_t m = 0; m < sweep_metrics (s); m++)
        if (!strcmp (sweep_metric (s, m), name))
            return m < e->nmetrics ? e->metrics[m] : m == 0 ? e->metric : NAN;
    return NAN;
}

static void add_result_of_event (struct reading *g, const struct event *e)
{
    struct report *r = g->r;

    end_attempt_of_event (g, e, ATTEMPT_RESULT);
    XGROW (r->results, r->nresults);
    r->results[r->nresults++] = (struct report_result){ r->sweeps[g->i].first + (long)e->trial - 1,
                                                        e->length, event_value (g, e) };
}

static int take_report_event (const struct event *e, void *arg, struct slurmdl_error *err)
{
    struct reading *g = arg;
    struct sweep *s = g->r->sweeps[g->i].s;
    struct report_segment *t =
        e->trial >= 1 && e->trial <= s->ntrials ? &g->segments[e->trial - 1] : NULL;
    bool next = t && t->open && e->attempt == t->over + 1;

    (void)err;
    switch (e->op) {
    case EVENT_BEGIN:
        if (t)
            begin_segment (g, e);
        break;
    case EVENT_RESULT:
        if (next)
            add_result_of_event (g, e);
        break;
    case EVENT_FAIL:
        if (next)
            end_attempt_of_event (g, e, ATTEMPT_FAILED);
        break;
    case EVENT_REJECT:
        if (next)
            end_attempt_of_event (g, e, ATTEMPT_REJECTED);
        break;
    case EVENT_PARK:
        if (next)
            end_attempt_of_event (g, e, ATTEMPT_PARKED);
        break;
    case EVENT_LOST:
        if (next)
            end_attempt_of_event (g, e, ATTEMPT_LOST);
        break;
    case EVENT_EXIT:
        if (t)
            t->open = false;
        break;
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_STOP:
    case EVENT_KILL:
    case EVENT_CONTINUE:
    case EVENT_RETRY:
    case EVENT_SCALE:
    case EVENT_EXPIRE:
        add_request_of_event (g->r, since_start (g, e->time), e->op);
        break;
    default:
        break;
    }
    if (e->op == EVENT_RETRY && t)
        t->open = true;
    return 0;
}

/* Add the attempts that are still running. */
static void add_running (struct reading *g)
{
    const struct report_sweep *of = &g->r->sweeps[g->i];
    double now = since_start (g, of->s->changed);
    const char *worker;
    double claimed;
    char slot[64];

    for (long n = 1; n <= of->s->ntrials; n++) {
        struct report_segment *t = &g->segments[n - 1];
        struct report_attempt a = { .trial = of->first + n - 1,
                                    .number = t->over + 1,
                                    .length = t->length,
                                    .ready = t->begin,
                                    .end = now,
                                    .how = ATTEMPT_RUNNING };
        enum trial_phase phase = report_phase (g->r, a.trial);
        if (!t->open || (phase != PHASE_RUNNING && phase != PHASE_WAITING))
            continue;
        worker = worker_of (g, t, n, a.number, slot, &claimed);
        if (phase == PHASE_WAITING && claimed < 0)
            continue;
        a.slot = slot_number (g, worker);
        a.cause = words_number (&g->r->causes, "");
        a.begin = claimed >= 0 ? claimed : fmin (now, fmax (t->begin, g->until[a.slot]));
        a.end = fmax (a.begin, now);
        add_attempt_of_event (g->r, &a);
    }
}

/* Add the attempts of r->sweeps[i].  Returns -1 with 'err' on failure. */
static int attempts_read (struct report *r, size_t i, struct slurmdl_error *err)
{
    struct reading g = { .r = r, .i = i };
    struct sweep *s = r->sweeps[i].s;
    struct log *log = NULL;
    char path[PATH_MAX];
    int rv = -1;

    snprintf (path, sizeof (path), "%s/log", s->dir);
    if ((g.npeers = peer_list (s->dir, &g.peers, NULL)) < 0)
        g.npeers = 0; /* no worker has started yet */
    g.segments = xcalloc ((size_t)s->ntrials + 1, sizeof (*g.segments));
    if ((log = log_create (path, err)) && log_sync (log, take_report_event, &g, err) >= 0) {
        add_running (&g);
        rv = 0;
    }
    int e = errno;
    log_destroy (log);
    free (g.segments);
    free (g.peers);
    free (g.until);
    errno = e;
    return rv;
}

/* ---- experiments and trials ---- */

static const char *end_of_path (const char *path)
{
    const char *slash = strrchr (path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static void fill_report_trials (struct report *r)
{
    for (size_t k = 0; k < r->nsweeps; k++)
        r->n += r->sweeps[k].s->ntrials;
    r->trials = xcalloc ((size_t)r->n + 1, sizeof (*r->trials));
    for (size_t k = 0, i = 0; k < r->nsweeps; k++) {
        r->sweeps[k].first = (long)i;
        for (long n = 1; n <= r->sweeps[k].s->ntrials; n++, i++)
            r->trials[i] = (struct report_trial){
                .sweep = k,
                .of = sweep_trial (r->sweeps[k].s, n),
                .number = n,
                .point = (long)i,
                .files.step = -1,
            };
    }
}

static void fill_points (struct report *r)
{
    for (long i = 0; i < r->n; i++) {
        struct report_trial *t = &r->trials[i];
        const struct sweep *s = r->sweeps[t->sweep].s;
        t->point = i - trial_repeat (s, t->number);
        r->repeats |= s->exp->search->config.repeats > 1;
    }
}

/* Find the best trial of all experiments. */
static void fill_best (struct report *r)
{
    r->best = -1;
    for (size_t k = 0; k < r->nsweeps; k++) {
        long i = r->sweeps[k].first + sweep_best (r->sweeps[k].s) - 1;
        if (sweep_best (r->sweeps[k].s)
            && (r->best < 0
                || report_better (r, report_value (r, i, 0), report_value (r, r->best, 0))))
            r->best = i;
    }
}

static int by_rung_length (const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void fill_lengths (struct report *r)
{
    size_t n = 0;

    r->lengths = xmalloc ((r->nresults + 1) * sizeof (*r->lengths));
    for (size_t i = 0; i < r->nresults; i++)
        r->lengths[i] = r->results[i].length;
    qsort (r->lengths, r->nresults, sizeof (*r->lengths), by_rung_length);
    for (size_t i = 0; i < r->nresults; i++)
        if (n == 0 || r->lengths[i] != r->lengths[n - 1])
            r->lengths[n++] = r->lengths[i];
    r->nlengths = n;
}

struct slot_entry {
    char *name;
    size_t old;
};

static int by_slot_name (const void *a, const void *b)
{
    return strverscmp (((const struct slot_entry *)a)->name, ((const struct slot_entry *)b)->name);
}

/* Sort slots so that "job_2" comes before "job_10". */
static void sort_slots (struct report *r)
{
    size_t n = r->slots.n;
    struct slot_entry *list = xmalloc ((n + 1) * sizeof (*list));
    size_t *new = xmalloc ((n + 1) * sizeof (*new));

    for (size_t i = 0; i < n; i++)
        list[i] = (struct slot_entry){ r->slots.list[i], i };
    qsort (list, n, sizeof (*list), by_slot_name);
    for (size_t i = 0; i < n; i++) {
        r->slots.list[i] = list[i].name;
        new[list[i].old] = i;
    }
    for (size_t i = 0; i < r->nattempts; i++)
        r->attempts[i].slot = new[r->attempts[i].slot];
    free (list);
    free (new);
}

static void add_checkpoint_files (struct report_files *f, const char *dir, long attempt)
{
    DIR *d = opendir (dir);
    struct dirent *e;
    struct stat st;
    long long step;
    char end;

    while (d && (e = readdir (d))) {
        if (sscanf (e->d_name, "%lld.h%c", &step, &end) != 2 || end != '5'
            || fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
            || !S_ISREG (st.st_mode))
            continue;
        f->n++;
        f->bytes += (double)st.st_size;
        if (step >= f->step) {
            f->step = step;
            f->attempt = attempt;
        }
    }
    if (d)
        closedir (d);
}

void report_fill_files (struct report *r)
{
    char dir[PATH_MAX];

    for (long i = 0; i < r->n; i++) {
        struct report_trial *t = &r->trials[i];
        for (long k = 1; k <= t->of->over + 1; k++) {
            snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld/ckpt", r->sweeps[t->sweep].s->dir,
                      t->number, k);
            add_checkpoint_files (&t->files, dir, k);
        }
    }
}

int report_fill (struct report *r, struct sweep *const *list, size_t n, struct slurmdl_error *err)
{
    r->sweeps = xcalloc (n + 1, sizeof (*r->sweeps));
    r->nsweeps = n;
    for (size_t k = 0; k < n; k++) {
        r->sweeps[k].s = list[k];
        r->sweeps[k].name = end_of_path (list[k]->dir);
    }
    fill_report_trials (r);
    for (size_t k = 0; k < n; k++)
        if (attempts_read (r, k, err) < 0)
            return -1;
    fill_points (r);
    fill_best (r);
    sort_slots (r);
    fill_lengths (r);
    return 0;
}

/* ---- cost: time of workers and GPUs ---- */

static bool attempt_is_of_sweep (const struct report *r, size_t attempt, size_t sweep)
{
    return sweep == r->nsweeps || r->trials[r->attempts[attempt].trial].sweep == sweep;
}

static double time_of_slots (const struct report *r, size_t sweep)
{
    double *from = xmalloc ((r->slots.n + 1) * 2 * sizeof (*from));
    double *to = from + r->slots.n;
    double sum = 0;

    for (size_t k = 0; k < r->slots.n; k++) {
        from[k] = INFINITY;
        to[k] = 0;
    }
    for (size_t i = 0; i < r->nattempts; i++) {
        const struct report_attempt *a = &r->attempts[i];
        if (!attempt_is_of_sweep (r, i, sweep))
            continue;
        from[a->slot] = fmin (from[a->slot], a->begin);
        to[a->slot] = fmax (to[a->slot], a->end);
    }
    for (size_t k = 0; k < r->slots.n; k++)
        sum += fmax (0, to[k] - from[k]);
    free (from);
    return sum;
}

struct report_cost report_cost_of (const struct report *r, size_t sweep)
{
    struct report_cost c = { 0 };
    double first = INFINITY, last = 0;

    for (size_t i = 0; i < r->nattempts; i++) {
        const struct report_attempt *a = &r->attempts[i];
        const struct sweep *s = r->sweeps[r->trials[a->trial].sweep].s;
        double seconds = a->end - a->begin;
        if (!attempt_is_of_sweep (r, i, sweep))
            continue;
        first = fmin (first, a->begin);
        last = fmax (last, a->end);
        c.attempts++;
        c.busy += seconds;
        c.gpus += seconds * (double)experiment_gpus (s->exp);
        if (a->how != ATTEMPT_RESULT && a->how != ATTEMPT_RUNNING)
            c.wasted += seconds;
    }
    c.wall = fmax (0, last - first);
    c.alive = time_of_slots (r, sweep);
    return c;
}
