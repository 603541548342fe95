/* SPDX-License-Identifier: Apache-2.0 */
/* Wait for files from other ranks. */
#include "runtime/run/file_rendezvous.h"

#include <dirent.h>
#include <errno.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/storage/whole_file.h"

void session_read_folder (const char *dir)
{
    DIR *d = opendir (dir);

    while (d && readdir (d))
        ;
    if (d)
        closedir (d);
}

struct waiting session_wait_begin (const struct session *t, double extra)
{
    double begin = monotonic ();

    return (struct waiting){ begin, begin + t->timeout + extra, begin, 100 };
}

bool session_wait_more (struct waiting *w)
{
    struct timespec t = { 0, w->us * 1000 };

    if (monotonic () > w->end)
        return false;
    nanosleep (&t, NULL);
    if (w->us < 7000)
        w->us += w->us / 2;
    return true;
}

int session_gone (long rank, const struct process_id *m, struct slurmdl_error *err)
{
    errno = ESRCH;
    return errorf (err, "rank %ld (process %lld) exited without taking part", rank,
                   (long long)m->pid);
}

int session_timed_out (const struct session *t, long rank, const struct waiting *w,
                       struct slurmdl_error *err)
{
    errno = ETIMEDOUT;
    return errorf (err,
                   "rank %ld of %ld did not arrive within %.0f s (DL_RANK_TIMEOUT); "
                   "check whether it hangs, and whether all ranks see %s",
                   rank, t->size, w->end - w->begin, t->dir);
}

int session_put_file (const char *path, const void *data, size_t n)
{
    struct timespec pause = { 0, 100 * 1000 * 1000 };
    double end = monotonic () + RETRY_SECONDS;
    int rv;

    while ((rv = message_put (path, data, n)) < 0 && monotonic () < end)
        nanosleep (&pause, NULL);
    return rv;
}
