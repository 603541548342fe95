/* SPDX-License-Identifier: Apache-2.0 */
/* Compare the Python stacks of main threads with those of the last look. */
#include "launcher/debug/python_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/debug/dump.h"
#include "launcher/debug/process_class.h"
#include "runtime/base/clock.h"

enum { PROCESSES = 256 };

/* Of its main thread, which is the last one. */
static uint64_t hash_stack (const char *text)
{
    uint64_t h = 1469598103934665603u;
    const char *last = text;

    for (const char *p = text; (p = strstr (p, "hread 0x")); p++)
        last = p;
    last += strcspn (last, "\n");
    for (; *last; last++)
        h = (h ^ (unsigned char)*last) * 1099511628211u;
    return h;
}

/* Whether its stack is another one than before. */
static bool has_changed (struct samples *s, const struct rank_process *p)
{
    char *text = dump_python (p->pid, p->state, false);
    bool changed = false;
    uint64_t hash;
    size_t i = 0;

    if (!text)
        return false;
    hash = hash_stack (text);
    free (text);
    while (i < s->n && s->list[i].pid != p->pid)
        i++;
    if (i < s->n)
        changed = s->list[i].hash != hash;
    if (i < SAMPLES_MAX)
        s->list[i] = (struct sample){ p->pid, hash };
    if (i == s->n && i < SAMPLES_MAX)
        s->n++;
    return changed;
}

static bool rank_goes_on (struct samples *s, const struct rank_process *p, size_t n)
{
    enum process_kind kinds[PROCESSES];
    bool changed = false;

    if (n == 0 || n > PROCESSES)
        return false;
    family_kinds ("/proc", p, n, kinds);
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == PROCESS_MAIN)
            changed |= has_changed (s, &p[i]);
    return changed;
}

void samples_take (struct samples *s, const struct roots *roots, struct rank_progress *progress,
                   double since)
{
    double now = monotonic ();

    for (size_t r = 0; r < roots->n; r++) {
        long rank = roots->list[r].rank;
        const struct rank_process *p;
        size_t n;
        if (progress_last (progress, rank, now) > since)
            continue;
        p = ranks_of (roots->ranks, rank, &n);
        if (rank_goes_on (s, p, n))
            progress_mark (progress, rank, monotonic ());
    }
}
