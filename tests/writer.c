/* SPDX-License-Identifier: Apache-2.0 */
/* A program to be killed: logs metrics or saves checkpoints for ever; and a
 * trainer, which does both to its end.
 *
 *     writer metrics DIR    prints the number of rows that are acknowledged
 *     writer save DIR       prints the step that is acknowledged
 *     writer train          a trial: loss and a checkpoint at each step
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/slurmdl.h"

enum { FLOATS = 50000 };

static int log_for_ever (const char *dir)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, &err);
    char name[16];

    for (long i = 0; m; i++) {
        snprintf (name, sizeof (name), "n%ld", i / 500 % 100);
        if (slurmdl_metrics_log (m, name, i, (double)i / 8) < 0)
            return 1;
        if (i % 97 == 0 && slurmdl_metrics_flush (m, &err) == 0)
            dprintf (1, "%ld\n", i + 1);
        if (i % 10 == 0)
            usleep (20);
    }
    fprintf (stderr, "%s\n", err.text);
    return 1;
}

static int save_for_ever (const char *dir)
{
    static float w[FLOATS];
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (dir, &err);
    uint64_t n = FLOATS;
    int64_t step = 0;

    if (!run || slurmdl_protect (run, "w", SLURMDL_F32, 1, &n, w) < 0
        || slurmdl_restore (run, &step, &err) < 0)
        return 1;
    for (int i = 0; i < FLOATS; i++)
        if (w[i] != (float)step)
            return 2; /* restored what was never saved */
    dprintf (1, "restored %lld\n", (long long)step);
    for (;;) {
        step++;
        for (int i = 0; i < FLOATS; i++)
            w[i] = (float)step;
        if (slurmdl_save (run, step, &err) < 0)
            return 3;
        dprintf (1, "%lld\n", (long long)step);
    }
}

static int train (void)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (NULL, &err);
    double lr = run ? slurmdl_float (run, "lr", 1) : 1;
    int64_t step = 0;
    uint64_t n = 1;

    if (!run || slurmdl_protect (run, "lr", SLURMDL_F64, 1, &n, &lr) < 0
        || slurmdl_restore (run, &step, &err) < 0)
        return 1;
    while (step < slurmdl_length (run)) {
        step++;
        if (slurmdl_log (run, "loss", step, lr + (double)step) < 0
            || slurmdl_log (run, "lr", step, lr) < 0
            || slurmdl_save (run, step, &err) < 0)
            return 3;
    }
    return slurmdl_close (run) < 0;
}

int main (int argc, char **argv)
{
    if (argc == 3 && !strcmp (argv[1], "metrics"))
        return log_for_ever (argv[2]);
    if (argc == 3 && !strcmp (argv[1], "save"))
        return save_for_ever (argv[2]);
    if (argc == 2 && !strcmp (argv[1], "train"))
        return train ();
    return 64;
}
