/* SPDX-License-Identifier: Apache-2.0 */
/* The back end MPI: the module slurmdl-mpi.so. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/mpi/module.h"

static pid_t initialised; /* by us, in this process */

static void attach (const struct comm_services *s)
{
    mpi_lib = s;
}

/* ---- begin and end ---- */

/* Not after a failure: it would wait for ranks that have gone. */
static void finalize (void)
{
    int done = 0;

    MPI_Finalized (&done);
    if (!done && getpid () == initialised && !atomic_load (&mpi_has_failed))
        MPI_Finalize ();
}

/* Open MPI's MPI_Init() ends a process that srun has started without. */
static bool is_told_of_others (void)
{
    return !getenv ("SLURM_PROCID") || !getenv ("SLURM_STEP_NODELIST") || getenv ("PMIX_RANK")
           || getenv ("PMI_FD") || getenv ("OMPI_COMM_WORLD_RANK");
}

static int initialise (struct slurmdl_error *err)
{
    int there = 0, over = 0, level = 0, here = 0;

    MPI_Finalized (&over);
    if (over) {
        errno = ENOTSUP;
        return errorf (err, "MPI has been finalised");
    }
    MPI_Initialized (&there);
    if (!there && !is_told_of_others ()) {
        errno = ENOTSUP;
        return errorf (err, "MPI would end this process, as the step has no PMI: "
                            "start it with srun --mpi=pmix or mpirun");
    }
    if (!there) {
        int rv;
        /* its plugins look for its symbols */
        dlopen ("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
        rv = MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        if (rv != MPI_SUCCESS)
            return mpi_failed (rv, "MPI_Init_thread", err);
        initialised = getpid ();
        atexit (finalize);
    }
    MPI_Query_thread (&level);
    MPI_Is_thread_main (&here);
    if (level < MPI_THREAD_SERIALIZED && !here) {
        errno = ENOTSUP;
        return errorf (err, "MPI was initialised for one thread, and this is "
                            "another: call MPI_Init_thread with "
                            "MPI_THREAD_MULTIPLE");
    }
    mpi_takes_turns = level < MPI_THREAD_MULTIPLE;
    return mpi_make_ops (err);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct slurmdl_error why_not;
static int can;

static void try_once (void)
{
    can = initialise (&why_not);
}

static int probe (struct slurmdl_error *err)
{
    int over = 0;

    pthread_once (&once, try_once);
    MPI_Finalized (&over);
    if (can == 0 && !over)
        return 0;
    errno = ENOTSUP;
    return errorf (err, "%s", over ? "MPI has been finalised" : why_not.text);
}

/* What each rank says of itself. */
struct mpi_peer {
    int rank; /* in MPI_COMM_WORLD */
    int tag;  /* the first one's is that of the new communicator */
    int cuda; /* MPI takes device memory */
};

static int check_peers (const struct mpi_self *s, const struct mpi_peer *peers,
                        struct slurmdl_error *err)
{
    for (int i = 0; i < s->size; i++)
        for (int k = 0; k < i; k++)
            if (peers[i].rank == peers[k].rank) {
                errno = ENOTSUP;
                return errorf (err,
                               "ranks %d and %d are both rank %d of MPI: MPI "
                               "does not know the other ranks: start them "
                               "with srun --mpi=pmix or mpirun",
                               k, i, peers[i].rank);
            }
    return 0;
}

/* Open MPI and MPICH have it; of others nothing is known. */
static bool takes_cuda (void)
{
    int (*query) (void) = dlsym (RTLD_DEFAULT, "MPIX_Query_cuda_support");

    return query && query () == 1;
}

static bool takes_device (void *self, enum collective_kind what)
{
    const struct mpi_self *s = self;

    return s->takes_device
           && (what == COMM_ALLGATHER || what == COMM_BROADCAST || what == COMM_ALLTOALL);
}

/* A communicator on its way: MPI knows no bound for it, so a thread waits that
 * is left behind, if it must be.  The last one of the two frees it.
 */
struct making {
    MPI_Group world, group;
    int tag;
    MPI_Comm comm;
    int rv;
    atomic_bool done;
    atomic_int users;
};

static void making_leave (struct making *m)
{
    if (atomic_fetch_sub (&m->users, 1) == 1)
        free (m);
}

static void *make (void *arg)
{
    struct making *m = arg;

    mpi_enter ();
    m->rv = MPI_Comm_create_group (MPI_COMM_WORLD, m->group, m->tag, &m->comm);
    if (m->rv == MPI_SUCCESS)
        MPI_Comm_set_errhandler (m->comm, MPI_ERRORS_RETURN);
    MPI_Group_free (&m->group);
    MPI_Group_free (&m->world);
    mpi_leave ();
    atomic_store (&m->done, true);
    making_leave (m);
    return NULL;
}

/* The program's signals are not for our thread. */
static int start (struct making *m)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    pthread_attr_init (&attr);
    pthread_attr_setdetachstate (&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create (&thread, &attr, make, m);
    pthread_attr_destroy (&attr);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    errno = rc;
    return rc ? -1 : 0;
}

/* A library that takes one thread at a time would be left locked by a thread
 * that waits in it: there MPI_Comm_create_group() has no bound.
 * MPI_Comm_idup(), which could be tested, wants all of MPI_COMM_WORLD.
 */
static int make_in_time (struct mpi_self *s, struct making *m, struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    struct timespec nap = { 0, 100000 };

    if (mpi_takes_turns || start (m) < 0)
        make (m);
    for (long n = 1; !atomic_load (&m->done); n++) {
        if (n % 100 == 0 && mpi_look (s, deadline, err) < 0)
            return -1;
        nanosleep (&nap, NULL);
    }
    s->comm = m->comm;
    return m->rv == MPI_SUCCESS ? 0 : mpi_failed (m->rv, "MPI_Comm_create_group", err);
}

/* Ranks of the mesh in its order, whichever they are in MPI_COMM_WORLD. */
static int make_comm (struct mpi_self *s, const struct mpi_peer *peers, struct slurmdl_error *err)
{
    struct making *m = calloc (1, sizeof (*m));
    int *ranks = malloc ((size_t)s->size * sizeof (*ranks));
    int rv;

    if (!ranks || !m) {
        free (ranks);
        free (m);
        return errorf (err, "out of memory");
    }
    for (int i = 0; i < s->size; i++)
        ranks[i] = peers[i].rank;
    m->tag = peers[0].tag;
    m->comm = MPI_COMM_NULL;
    atomic_store (&m->users, 2);
    mpi_enter ();
    MPI_Comm_group (MPI_COMM_WORLD, &m->world);
    MPI_Group_incl (m->world, s->size, ranks, &m->group);
    mpi_leave ();
    rv = make_in_time (s, m, err);
    making_leave (m);
    free (ranks);
    return rv;
}

static void close_self (void *self)
{
    struct mpi_self *s = self;
    int over = 0;

    if (!s)
        return;
    MPI_Finalized (&over);
    /* with a collective under way it would wait */
    if (!over && s->comm != MPI_COMM_NULL && !atomic_load (&s->failed)) {
        mpi_enter ();
        MPI_Comm_free (&s->comm);
        mpi_leave ();
    }
    free (s->counts);
    free (s);
}

static struct mpi_self *create (struct mesh *m)
{
    struct mpi_self *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->mesh = m;
    s->comm = MPI_COMM_NULL;
    s->size = (int)mpi_lib->size (m);
    s->timeout = mpi_lib->timeout (m);
    s->counts = calloc ((size_t)s->size * 4, sizeof (*s->counts));
    if (!s->counts) {
        free (s);
        return NULL;
    }
    s->places = s->counts + s->size;
    s->counts2 = s->places + s->size;
    s->places2 = s->counts2 + s->size;
    return s;
}

static int open_self (struct mesh *m, void **self, struct slurmdl_error *err)
{
    static atomic_int tags;
    struct mpi_self *s = create (m);
    struct mpi_peer mine = { 0, atomic_fetch_add (&tags, 1) % 16384, takes_cuda () };
    struct mpi_peer *peers;
    int rv = -1;

    if (!s)
        return errorf (err, "out of memory");
    MPI_Comm_rank (MPI_COMM_WORLD, &mine.rank);
    peers = malloc ((size_t)s->size * sizeof (*peers));
    if (!peers)
        errorf (err, "out of memory");
    else if (mpi_lib->gather (m, &mine, sizeof (mine), peers, err) == 0
             && check_peers (s, peers, err) == 0)
        rv = make_comm (s, peers, err);
    s->takes_device = rv == 0;
    for (int i = 0; rv == 0 && i < s->size; i++)
        s->takes_device = s->takes_device && peers[i].cuda;
    free (peers);
    if (rv < 0)
        close_self (s);
    else
        *self = s;
    return rv;
}

static void abort_self (void *self)
{
    struct mpi_self *s = self;

    atomic_store (&s->aborted, true);
}

extern const struct comm_backend slurmdl_backend_mpi;
const struct comm_backend slurmdl_backend_mpi = {
    .name = "mpi",
    .probe = probe,
    .open = open_self,
    .close = close_self,
    .abort = abort_self,
    .run = mpi_run,
    .attach = attach,
    .takes_device = takes_device,
};
