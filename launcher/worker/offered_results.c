/* SPDX-License-Identifier: Apache-2.0 */
/* Results that their workers could not put, for whoever puts the next entry. */
#include "launcher/worker/offered_results.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sweep/entry_text.h"
#include "launcher/sweep/liveness.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sys/small_file.h"
#include "runtime/storage/inside.h"

enum { OFFER_MAX = 1 << 20, NONCE = 32 };

static const char suffix[] = ".offer";

static void offer_path (char path[PATH_MAX], const struct worker *w, const char *nonce)
{
    snprintf (path, PATH_MAX, "%.3900s/workers/%.32s%s", w->sweep->dir, nonce, suffix);
}

/* A line as JSON; '*text' is then the next one. */
static json_t *next_line (char **text)
{
    char *line = strsep (text, "\n");

    return line ? json_loads (line, 0, NULL) : NULL;
}

/* Two lines: the result, and what would have begun. */
static int parse (struct offer *o, char *text)
{
    json_t *begin;
    struct event e;

    if ((o->json = next_line (&text)) && event_read (o->json, &o->result) < 0) {
        json_decref (o->json);
        o->json = NULL;
    }
    if ((begin = next_line (&text)) && event_read (begin, &e) == 0) {
        o->length = e.op == EVENT_BEGIN ? e.length : 0;
        event_free (&e);
    }
    json_decref (begin);
    return o->json ? 0 : -1;
}

static bool is_offered (const struct offers *o, long trial)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].result.trial == trial)
            return true;
    return false;
}

/* The log would take it, and it is of whoever has the attempt. */
static bool is_good (struct worker *w, const struct offer *o)
{
    const struct event *e = &o->result;
    const char *owner;

    if (e->op != EVENT_RESULT || event_unfit (e) || !isfinite (e->seconds) || e->seconds < 0
        || !sweep_takes_result (w->sweep, e) || (e->nmetrics > 0) != (sweep_metrics (w->sweep) > 1)
        || (e->nmetrics > 0 && e->nmetrics != sweep_metrics (w->sweep)))
        return false;
    owner = worker_owner_of (w, (long)e->trial);
    return owner && !strcmp (owner, o->nonce);
}

/* Others may give the name: it is of the user who made the worker's file. */
static bool is_workers (const char *path, uid_t owner)
{
    char worker[PATH_MAX];
    struct stat st;

    snprintf (worker, sizeof (worker), "%.*s", (int)(strlen (path) - strlen (suffix)), path);
    return lstat (worker, &st) == 0 && st.st_uid == owner;
}

/* Its worker has died before it could withdraw it. */
static bool is_over (const struct worker *w, const struct offer *o)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, (long)o->result.trial);

    return t && t->over >= o->result.attempt;
}

static void forget (struct offer *o)
{
    event_free (&o->result);
    json_decref (o->json);
}

static void collect (struct worker *w, const char *nonce, long trial, struct offers *all)
{
    struct offer *o = &all->list[all->n];
    char path[PATH_MAX];
    uid_t owner;
    size_t len;
    char *text;

    *o = (struct offer){ .length = 0 };
    snprintf (o->nonce, sizeof (o->nonce), "%.*s", NONCE, nonce);
    offer_path (path, w, o->nonce);
    text = file_read_now (path, OFFER_MAX, &len, &owner, NULL);
    if (text && is_workers (path, owner) && journal_entry_body (text, len)
        && parse (o, text) == 0) {
        if (o->result.trial != trial && !is_offered (all, (long)o->result.trial) && is_good (w, o))
            all->n++;
        else {
            if (is_over (w, o))
                inside_unlink (path, 0);
            forget (o);
        }
    }
    free (text);
}

static bool is_name (const struct worker *w, const char *name)
{
    char nonce[NONCE + 1];

    snprintf (nonce, sizeof (nonce), "%s", name);
    return strlen (name) > NONCE && !strcmp (name + NONCE, suffix) && peer_is_nonce (nonce)
           && strcmp (nonce, worker_nonce (w));
}

void offers_collect (struct worker *w, long trial, struct offers *o)
{
    char path[PATH_MAX];
    struct dirent *e;
    DIR *dir;
    int fd;

    o->n = 0;
    if (!w->rivals)
        return;
    snprintf (path, sizeof (path), "%.3900s/workers", w->sweep->dir);
    fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    dir = fd < 0 ? NULL : fdopendir (fd);
    while (dir && o->n < OFFERS_MAX && (e = readdir (dir)))
        if (is_name (w, e->d_name))
            collect (w, e->d_name, trial, o);
    if (dir)
        closedir (dir);
}

void offers_free (struct offers *o)
{
    for (size_t i = 0; i < o->n; i++)
        forget (&o->list[i]);
    o->n = 0;
}

/* Under a name that is new: another's file may have been put there. */
void offer_put (struct worker *w, const struct event *events)
{
    char *text = w->offers ? NULL : journal_entry_text (events, 2);
    char path[PATH_MAX];
    int fd = -1;

    w->rivals = true;
    offer_path (path, w, worker_nonce (w));
    if (text)
        fd = inside_open (path, O_WRONLY | O_CREAT | O_EXCL, 0644, NULL);
    if (fd >= 0) {
        w->offers = true;
        dprintf (fd, "%s", text);
        close (fd);
    }
    free (text);
}

void offer_withdraw (struct worker *w)
{
    char path[PATH_MAX];

    if (!w->offers)
        return;
    offer_path (path, w, worker_nonce (w));
    inside_unlink (path, 0);
    w->offers = false;
}
