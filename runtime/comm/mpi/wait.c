/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of MPI: one thread at a time where it must be, and bounded waits. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/mpi/module.h"

enum { CHECK_EACH = 4096 }; /* looks at a request between those at the clock */

const struct comm_services *mpi_lib;
atomic_bool mpi_has_failed;
bool mpi_takes_turns;

/* Where the library has promised threads only one at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void mpi_enter (void)
{
    if (mpi_takes_turns)
        pthread_mutex_lock (&turn);
}

void mpi_leave (void)
{
    if (mpi_takes_turns)
        pthread_mutex_unlock (&turn);
}

int mpi_failed (int code, const char *what, struct slurmdl_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;

    MPI_Error_string (code, text, &n);
    errno = EIO;
    return errorf (err, "%s: %s", what, text);
}

static int give_up (struct mpi_self *s, int error)
{
    atomic_store (&s->failed, true);
    atomic_store (&mpi_has_failed, true);
    errno = error;
    return -1;
}

int mpi_look (struct mpi_self *s, double deadline, struct slurmdl_error *err)
{
    if (atomic_load (&s->aborted)) {
        errorf (err, "mpi: aborted");
        return give_up (s, ECONNRESET);
    }
    if (mpi_lib->check (s->mesh, err) < 0)
        return give_up (s, errno);
    if (monotonic () < deadline)
        return 0;
    errorf (err, "mpi: rank %ld has waited for %g s for the others", mpi_lib->rank (s->mesh),
            s->timeout);
    return give_up (s, ETIMEDOUT);
}

/* Of a call that has returned 'code'; a request that is given up stays. */
int mpi_finish (struct mpi_self *s, int code, MPI_Request *request, const char *what,
                struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    int done = 0;

    mpi_leave (); /* taken by the macro below */
    if (code == MPI_SUCCESS)
        for (long n = 1; !done; n++) {
            mpi_enter ();
            code = MPI_Test (request, &done, MPI_STATUS_IGNORE);
            mpi_leave ();
            if (code != MPI_SUCCESS || done)
                break;
            if (n % CHECK_EACH == 0 && mpi_look (s, deadline, err) < 0)
                return -1;
            sched_yield ();
        }
    if (code == MPI_SUCCESS)
        return 0;
    mpi_failed (code, what, err);
    return give_up (s, EIO);
}
