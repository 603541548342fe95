/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a running job: which have ended, and how. */
#include "launcher/job/job.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/experiment.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/trainer/trainer.h"

enum { END_MOST = 128 };

/* Index of a rank's role.  '*first' becomes the first rank of that role. */
static size_t role_of (const struct job_settings *j, long rank, long *first)
{
    *first = 0;
    for (size_t i = 0; i < j->nroles; i++) {
        if (rank < *first + j->roles[i].count)
            return i;
        *first += j->roles[i].count;
    }
    return j->nroles;
}

/* How a member ended. */
struct member_end {
    int status;
    char node[65];
    double time; /* of the file; only decides which of several is named */
};

/* Read "STATUS NODE".  Other members of a group may have put anything there. */
static bool read_end (const char *dir, const char *name, uid_t owner, struct member_end *end)
{
    char *path = xasprintf ("%s/%s", dir, name);
    uid_t writer = owner;
    char *text = file_read_now (path, END_MOST, NULL, &writer, NULL);
    bool ok = text && writer == owner && sscanf (text, "%d %64s", &end->status, end->node) == 2;
    struct stat st;

    end->time = ok && stat (path, &st) == 0
                    ? (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec
                    : 0;
    free (text);
    free (path);
    return ok;
}

/* Returns -1 for a name that is no number. */
static long rank_of_name (const char *name)
{
    char *end;
    long rank = strtol (name, &end, 10);

    return isdigit ((unsigned char)*name) && !*end ? rank : -1;
}

struct look {
    const struct job_settings *job;
    struct role_members *list;
    struct members *m;
    bool final; /* a member failed that the policy does not restart */
    /* the member that is named: */
    const char *role;
    int status;
    double time; /* when it ended */
};

/* Name the first member that failed, since others fail because of it; one that the policy does not
 * restart goes before all that it does.
 */
static bool is_to_be_named (const struct look *l, bool again, double time)
{
    if (l->m->rank < 0 || l->final == again)
        return l->m->rank < 0 || !again;
    return time < l->time;
}

static void note_member_end (struct look *l, long rank, const struct member_end *end)
{
    int status = end->status;
    long first;
    size_t i = role_of (l->job, rank, &first);
    struct role_members *r = &l->list[i];
    bool again;

    if (i == l->job->nroles)
        return;
    if (status == 0) {
        r->succeeded++;
        r->first_succeeded |= rank == first;
        return;
    }
    r->failed++;
    again = role_begins_again (r->restart, r->ranges, status);
    /* a failure that is not restarted decides; otherwise the first one read */
    if (r->failed == 1 || (!again && role_begins_again (r->restart, r->ranges, r->status)))
        r->status = status;
    if (is_to_be_named (l, again, end->time)) {
        l->m->rank = rank;
        l->m->index = rank - first;
        l->role = r->name;
        l->status = status;
        l->time = end->time;
        snprintf (l->m->node, sizeof (l->m->node), "%s", end->node);
        l->final |= !again;
    }
}

static bool only_servers_run (const struct look *l)
{
    for (size_t i = 0; i < l->job->nroles; i++)
        if (!role_serves (l->list[i].name)
            && l->list[i].succeeded + l->list[i].failed < l->list[i].count)
            return false;
    return true;
}

void members_look (const struct trial_attempt *a, uid_t owner, struct members *m)
{
    const struct job_settings *j = a->sweep->exp->job;
    struct look l = { .job = j, .list = xcalloc (j->nroles, sizeof (*l.list)), .m = m };
    struct member_end end;
    char dir[PATH_MAX];
    long rank;
    DIR *d;

    *m = (struct members){ .rank = -1 };
    for (size_t i = 0; i < j->nroles; i++)
        l.list[i] = (struct role_members){ .name = j->roles[i].name,
                                           .count = (long)j->roles[i].count,
                                           .restart = j->roles[i].restart,
                                           .ranges = j->roles[i].ranges ?: j->ranges };
    snprintf (dir, sizeof (dir), "%.4000s/" ENDS_NAME, a->dir);
    d = opendir (dir);
    for (struct dirent *e; d && (e = readdir (d));)
        if ((rank = rank_of_name (e->d_name)) >= 0 && read_end (dir, e->d_name, owner, &end))
            note_member_end (&l, rank, &end);
    if (d)
        closedir (d);
    m->verdict = job_judge (l.list, j->nroles, j->success);
    if (m->rank >= 0 && m->verdict.status) {
        m->verdict.role = l.role;
        m->verdict.status = l.status;
    }
    m->others = only_servers_run (&l);
    free (l.list);
}
