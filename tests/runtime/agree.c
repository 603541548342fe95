/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks with random delays stop at the same step. */
#include <time.h>

#include "runtime/slurmdl.h"
#include "tests/folder.h"
#include "tests/ranks.h"

enum { CALLS = 4000 };

static void nap (unsigned *seed, int most)
{
    struct timespec t = { 0, (long)(rand_r (seed) % (unsigned)most) * 1000 };

    nanosleep (&t, NULL);
}

/* Write to a file at which call this rank stopped. */
static void stop_model (int rank, int size, void *arg)
{
    unsigned seed = *(unsigned *)arg * 31 + (unsigned)rank;
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    int who = (int)(*(unsigned *)arg % (unsigned)size);
    int when = (int)(*(unsigned *)arg * 7919 % CALLS / 2);
    char path[64];
    FILE *f;
    int i;

    NEED (run);
    for (i = 0; i < CALLS; i++) {
        int rv;
        if (rank == who && i == when)
            slurmdl_request_stop (run);
        if (i % 16 == 0)
            nap (&seed, 200 * (1 + (rank + i / 500) % size));
        rv = slurmdl_stop_here (run, i);
        NEED (rv >= 0);
        if (rv)
            break;
    }
    NEED (slurmdl_stop_here (run, i + 1) == (i < CALLS));
    snprintf (path, sizeof (path), "stop.%d", rank);
    f = fopen (in_dir (path), "w");
    fprintf (f, "%d", i);
    fclose (f);
    slurmdl_close (run);
}

FOLDER_CASE (all_stop_at_the_same_step)
{
    int stops = 0;

    for (unsigned k = 0; k < 12; k++) {
        int size = 2 + (int)(k % 3);
        int first = -1;
        assert_int_equal (ranks (size, -1, stop_model, &k), 0);
        for (int r = 0; r < size; r++) {
            char path[64];
            int at = -2;
            snprintf (path, sizeof (path), "stop.%d", r);
            FILE *f = fopen (in_dir (path), "r");
            assert_non_null (f);
            assert_int_equal (fscanf (f, "%d", &at), 1);
            fclose (f);
            if (r == 0)
                first = at;
            assert_int_equal (at, first);
        }
        stops += first < CALLS;
    }
    assert_true (stops > 0);
}

RUN_CASES ()
