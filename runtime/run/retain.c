/* SPDX-License-Identifier: Apache-2.0 */
/* Delete the checkpoints that a running attempt need not keep. */
#include "runtime/run/retain.h"
#include "runtime/base/environment.h"
#include "runtime/storage/inside.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keep a second one in case the newest turns out to be damaged. */
enum { NEWEST = 2 };

void retain_open (struct retention *r)
{
    const char *metric = getenv ("DL_METRIC");
    const char *larger = getenv ("DL_LARGER_IS_BETTER");

    *r = (struct retention){ .best = environment_number ("DL_KEEP_BEST", 0),
                             .latest = environment_number ("DL_KEEP_LATEST", 0) };
    if (r->latest < NEWEST)
        r->latest = NEWEST;
    if (metric && r->best > 0)
        r->metric = strdup (metric);
    r->larger = larger && !strcmp (larger, "1");
    pthread_mutex_init (&r->lock, NULL);
}

void retain_close (struct retention *r)
{
    pthread_mutex_destroy (&r->lock);
    free (r->metric);
    free (r->saved);
}

void retain_score (struct retention *r, const char *name, int64_t step, double value)
{
    if (!r->metric || strcmp (name, r->metric))
        return;
    pthread_mutex_lock (&r->lock);
    r->recent[r->nrecent++ % RECENT] = (struct score){ step, value };
    pthread_mutex_unlock (&r->lock);
}

/* The last value logged for this step, or NaN. */
static double recent_value (struct retention *r, int64_t step)
{
    size_t n = r->nrecent < RECENT ? r->nrecent : RECENT;

    for (size_t i = 1; i <= n; i++) {
        const struct score *s = &r->recent[(r->nrecent - i) % RECENT];
        if (s->step == step)
            return s->value;
    }
    return NAN;
}

/* A metric may be logged before or after the checkpoint of its step. */
static void read_metric_values (struct retention *r)
{
    pthread_mutex_lock (&r->lock);
    for (size_t i = 0; i < r->nsaved; i++) {
        double v = recent_value (r, r->saved[i].step);
        if (!isnan (v))
            r->saved[i].value = v;
    }
    pthread_mutex_unlock (&r->lock);
}

static int add_saved (struct retention *r, int64_t step)
{
    struct score *list;

    for (size_t i = 0; i < r->nsaved; i++)
        if (r->saved[i].step == step)
            return 0;
    list = realloc (r->saved, (r->nsaved + 1) * sizeof (*list));
    if (!list)
        return -1;
    r->saved = list;
    list[r->nsaved++] = (struct score){ step, NAN };
    return 0;
}

static double metric_of_step (const struct retention *r, int64_t step)
{
    for (size_t i = 0; i < r->nsaved; i++)
        if (r->saved[i].step == step)
            return r->larger ? -r->saved[i].value : r->saved[i].value;
    return NAN;
}

/* Between equal values, the older checkpoint wins. */
static bool is_among_best (const struct retention *r, const int64_t *steps, int n, int at)
{
    double value = metric_of_step (r, steps[at]);
    long better = 0;

    if (!isfinite (value))
        return false;
    for (int i = 0; i < n; i++) {
        double other = metric_of_step (r, steps[i]);
        better += isfinite (other) && (other < value || (other == value && i < at));
    }
    return better < r->best;
}

static int compare_step_numbers (const struct dirent **a, const struct dirent **b)
{
    long long x = atoll ((*a)->d_name);
    long long y = atoll ((*b)->d_name);

    return x < y ? -1 : x > y;
}

static int is_checkpoint (const struct dirent *e)
{
    char *end;

    strtoll (e->d_name, &end, 10);
    return end != e->d_name && !strcmp (end, ".h5");
}

static void remove_files (const struct retention *r, const char *folder, struct dirent **list,
                          const int64_t *steps, int n)
{
    char path[PATH_MAX];

    for (int i = 0; i < n - r->latest; i++)
        if (!is_among_best (r, steps, n, i)) {
            snprintf (path, sizeof (path), "%s/%s", folder, list[i]->d_name);
            inside_unlink_any (path, 0);
        }
}

void retain_saved (struct retention *r, const char *folder, int64_t step)
{
    struct dirent **list;
    int fd = inside_open_any (folder, O_RDONLY | O_DIRECTORY, 0, NULL);
    int n = fd < 0 ? -1 : scandirat (fd, ".", &list, is_checkpoint, compare_step_numbers);
    int64_t *steps;

    if (fd >= 0)
        close (fd);
    if (n < 0)
        return;
    if ((!r->metric || add_saved (r, step) == 0)
        && (steps = calloc ((size_t)n + 1, sizeof (*steps)))) {
        read_metric_values (r);
        for (int i = 0; i < n; i++)
            steps[i] = atoll (list[i]->d_name);
        remove_files (r, folder, list, steps, n);
        free (steps);
    }
    for (int i = 0; i < n; i++)
        free (list[i]);
    free (list);
}
