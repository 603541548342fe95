/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronize the ranks of a node. */
#include "runtime/comm/native/native.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"
#include "runtime/comm/mesh/channel.h"

/* how often a sleeping rank checks on the others */
enum { CHECK_MS = 50 };
/* Checks of a counter before sleeping, which takes about 20 us including the
 * wake-up.  The first keep the CPU; the later ones yield it to another rank that
 * wants to run there.
 */
enum { SPINS = 10, YIELDS = 100 };
/* If a yielded CPU does not come back for this long, it has more to do than run our
 * ranks.  Linux makes a thread that yields wait until all others had their turn,
 * but not one that sleeps.  So sleep at once the next few times, and twice as often
 * if that happens again.
 */
static const double SLOW_TURN = 1e-3;
enum { CROWDED_LEAST = 4, CROWDED_MOST = 512 };

static void pause_cpu (void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause ();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static struct arrival_counter *counter_of_barrier (struct node_group *n, uint64_t barrier)
{
    return &n->head->counters[barrier % NODE_BARRIERS];
}

/* The value of the counter when everybody has arrived.  Both wrap around. */
static unsigned barrier_target (struct node_group *n, uint64_t barrier)
{
    return (unsigned)((barrier / NODE_BARRIERS + 1) * (uint64_t)n->size);
}

static bool is_barrier_complete (struct node_group *n, uint64_t barrier)
{
    unsigned arrived =
        atomic_load_explicit (&counter_of_barrier (n, barrier)->arrived, memory_order_acquire);

    return (int)(arrived - barrier_target (n, barrier)) >= 0;
}

uint64_t node_barrier_arrive (struct node_group *n)
{
    struct node_rank *own = &n->head->ranks[n->rank];
    uint64_t barrier = n->barrier++;
    struct arrival_counter *m = counter_of_barrier (n, barrier);

    own->call[barrier % NODE_BARRIERS] = n->call;
    own->value[barrier % NODE_BARRIERS] = n->value;
    own->tag[barrier % NODE_BARRIERS] = mesh_called (n->mesh);
    atomic_store_explicit (&own->barrier, barrier + 1, memory_order_relaxed);
    if (atomic_fetch_add (&m->arrived, 1) + 1 == barrier_target (n, barrier)
        && atomic_load (&m->sleepers))
        futex_wake_shared (&m->arrived);
    return barrier;
}

static void abandon_barrier (struct node_group *n, int code, const char *why)
{
    struct node_head *h = n->head;
    unsigned none = 0;

    if (atomic_compare_exchange_strong (&h->broken, &none, 1)) {
        h->code = code;
        snprintf (h->why, sizeof (h->why), "%s", why);
        atomic_store (&h->broken, 2);
    }
    for (int i = 0; i < NODE_BARRIERS; i++)
        futex_wake_shared (&h->counters[i].arrived);
}

void node_abort (struct node_group *n, const char *why)
{
    abandon_barrier (n, ECONNRESET, why);
}

/* Give up at the barrier because the mesh has failed. */
static int fail_node_group (struct node_group *n, struct slurmdl_error *err)
{
    int saved = errno;

    abandon_barrier (n, saved, err->text);
    mesh_set_waits (n->mesh, -1);
    errno = saved;
    return -1;
}

/* Fail if a rank gave up.  If the mesh reports a reason soon, prefer that. */
static int check_node_failure (struct node_group *n, struct slurmdl_error *err)
{
    struct timespec nap = { 0, 10000000 };
    const char *why = n->head->why;

    if (atomic_load (&n->head->broken) != 2)
        return 0;
    for (int i = 0; i < 20; i++) {
        if (mesh_usable (n->mesh, err) < 0)
            return -1;
        nanosleep (&nap, NULL);
    }
    return mesh_fail (n->mesh, n->head->code, err, "%.255s",
                      *why ? why : "a rank on this node gave up");
}

/* The first rank that has not arrived, numbered as in the mesh. */
static long missing_node_rank (const struct node_group *n, uint64_t barrier)
{
    long r = 0;

    while (r < n->size - 1 && atomic_load (&n->head->ranks[r].barrier) > barrier)
        r++;
    return n->world[r];
}

static void sleep_until_arrival (struct node_group *n, uint64_t barrier)
{
    struct arrival_counter *m = counter_of_barrier (n, barrier);
    unsigned arrived;

    atomic_fetch_add (&m->sleepers, 1);
    arrived = atomic_load (&m->arrived);
    if (!is_barrier_complete (n, barrier) && atomic_load (&n->head->broken) != 2)
        futex_wait_shared (&m->arrived, arrived, CHECK_MS);
    atomic_fetch_sub (&m->sleepers, 1);
}

static int sleep_at_barrier (struct node_group *n, uint64_t barrier, struct slurmdl_error *err)
{
    double begin = monotonic (), checked = begin, now;

    while (!is_barrier_complete (n, barrier)) {
        if (check_node_failure (n, err) < 0)
            return -1;
        mesh_set_waits (n->mesh, missing_node_rank (n, barrier));
        sleep_until_arrival (n, barrier);
        now = monotonic ();
        if (now - checked < CHECK_MS / 1e3 || is_barrier_complete (n, barrier))
            continue;
        if (mesh_check (n->mesh, err) < 0)
            return fail_node_group (n, err);
        if (now - begin > mesh_timeout (n->mesh)) {
            mesh_timed_out (n->mesh, missing_node_rank (n, barrier), err);
            return fail_node_group (n, err);
        }
        checked = now;
    }
    mesh_set_waits (n->mesh, -1);
    return 0;
}

/* Compare our call with that of our neighbour. */
static int check_call (struct node_group *n, uint64_t barrier, struct slurmdl_error *err)
{
    long r = (n->rank + 1) % n->size;
    const struct node_rank *other = &n->head->ranks[r];

    if (other->call[barrier % NODE_BARRIERS] == n->call)
        return 0;
    if (mesh_compare (n->mesh, n->world[r], other->tag[barrier % NODE_BARRIERS], err) == 0)
        mesh_fail (n->mesh, EPROTO, err,
                   "the same call of rank %ld and rank %ld has different numbers of bytes",
                   mesh_world_rank (n->mesh, n->world[n->rank]),
                   mesh_world_rank (n->mesh, n->world[r]));
    return fail_node_group (n, err);
}

/* Other processes use the CPU: skip yielding in the next waits, twice as many each time. */
static void skip_more_yields (struct node_group *n)
{
    unsigned next = 2 * n->crowded;

    n->crowded = next < CROWDED_LEAST ? CROWDED_LEAST : next > CROWDED_MOST ? CROWDED_MOST : next;
    n->left = n->crowded;
}

/* Yield the CPU to others for a while. */
static void yield (struct node_group *n, uint64_t barrier)
{
    double then = monotonic (), now;

    if (n->left > 0) {
        n->left--;
        return;
    }
    for (int i = 0; i < YIELDS && !is_barrier_complete (n, barrier); i++, then = now) {
        sched_yield ();
        now = monotonic ();
        if (now - then > SLOW_TURN) {
            skip_more_yields (n);
            return;
        }
    }
    n->crowded = 0;
}

int node_barrier_wait (struct node_group *n, uint64_t barrier, struct slurmdl_error *err)
{
    struct slurmdl_error own = { "" };

    if (!err)
        err = &own;
    for (int i = 0; i < SPINS && !is_barrier_complete (n, barrier); i++)
        pause_cpu ();
    if (!is_barrier_complete (n, barrier))
        yield (n, barrier);
    if (!is_barrier_complete (n, barrier) && sleep_at_barrier (n, barrier, err) < 0)
        return -1;
    return check_call (n, barrier, err);
}
