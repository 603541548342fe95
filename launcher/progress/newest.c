/* SPDX-License-Identifier: Apache-2.0 */
/* The newest value of a trial at work, read again only if its file changed. */
#include "launcher/progress/newest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/sweep/queries.h"

int newest_room (struct picture_trial **list, long *n, long wanted)
{
    struct picture_trial *more;

    if (wanted <= *n)
        return 0;
    wanted += wanted / 2 + 16;
    if (!(more = realloc (*list, (size_t)wanted * sizeof (*more))))
        return -1;
    memset (more + *n, 0, (size_t)(wanted - *n) * sizeof (*more));
    *list = more;
    *n = wanted;
    return 0;
}

/* A number that is another one when a row was added. */
static uint64_t files_of (const struct sweep *s, long number)
{
    const struct sweep_trial *t = sweep_trial (s, number);
    uint64_t sum = (uint64_t)t->over + 1;
    char path[PATH_MAX];
    struct stat st;

    for (int k = 0; k < 100; k++) {
        char part[16] = "";
        if (k)
            snprintf (part, sizeof (part), ".%d", k);
        snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/metrics%s.h5", s->dir, number,
                  t->over + 1, part);
        if (lstat (path, &st) < 0)
            break;
        sum = sum * 31 + (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec
              + (uint64_t)st.st_size;
    }
    return sum;
}

bool newest_value (const struct sweep *s, struct picture_trial *t, long number,
                   struct metric_progress *m)
{
    uint64_t files = files_of (s, number);

    if (files != t->files) {
        t->known = trial_progress (s, number, &t->newest) == 0;
        t->files = files;
    }
    *m = t->newest;
    return t->known;
}
