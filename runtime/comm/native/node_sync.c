/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronize the ranks of a node. */
#include "runtime/comm/native/node_sync.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"
#include "runtime/comm/mesh/channel.h"

/* how often a sleeping rank checks on the others */
enum { LOOK_MS = 50 };
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

static struct node_meter *meter_of (struct node_group *n, uint64_t meeting)
{
    return &n->head->meters[meeting % NODE_METERS];
}

/* The value of the counter when everybody has arrived.  Both wrap around. */
static unsigned barrier_target (struct node_group *n, uint64_t meeting)
{
    return (unsigned)((meeting / NODE_METERS + 1) * (uint64_t)n->size);
}

static bool is_barrier_complete (struct node_group *n, uint64_t meeting)
{
    unsigned came = atomic_load_explicit (&meter_of (n, meeting)->came, memory_order_acquire);

    return (int)(came - barrier_target (n, meeting)) >= 0;
}

uint64_t node_come (struct node_group *n)
{
    struct node_rank *own = &n->head->ranks[n->rank];
    uint64_t meeting = n->meeting++;
    struct node_meter *m = meter_of (n, meeting);

    own->call[meeting % NODE_METERS] = n->call;
    own->number[meeting % NODE_METERS] = n->say;
    own->tag[meeting % NODE_METERS] = mesh_called (n->mesh);
    atomic_store_explicit (&own->meeting, meeting + 1, memory_order_relaxed);
    if (atomic_fetch_add (&m->came, 1) + 1 == barrier_target (n, meeting)
        && atomic_load (&m->sleepers))
        futex_wake_shared (&m->came);
    return meeting;
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
    for (int i = 0; i < NODE_METERS; i++)
        futex_wake_shared (&h->meters[i].came);
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
static int look_at_reason (struct node_group *n, struct slurmdl_error *err)
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
static long awaited_node_rank (const struct node_group *n, uint64_t meeting)
{
    long r = 0;

    while (r < n->size - 1 && atomic_load (&n->head->ranks[r].meeting) > meeting)
        r++;
    return n->world[r];
}

static void doze (struct node_group *n, uint64_t meeting)
{
    struct node_meter *m = meter_of (n, meeting);
    unsigned came;

    atomic_fetch_add (&m->sleepers, 1);
    came = atomic_load (&m->came);
    if (!is_barrier_complete (n, meeting) && atomic_load (&n->head->broken) != 2)
        futex_wait_shared (&m->came, came, LOOK_MS);
    atomic_fetch_sub (&m->sleepers, 1);
}

static int sleep_at_barrier (struct node_group *n, uint64_t meeting, struct slurmdl_error *err)
{
    double begin = monotonic (), look = begin, now;

    while (!is_barrier_complete (n, meeting)) {
        if (look_at_reason (n, err) < 0)
            return -1;
        mesh_set_waits (n->mesh, awaited_node_rank (n, meeting));
        doze (n, meeting);
        now = monotonic ();
        if (now - look < LOOK_MS / 1e3 || is_barrier_complete (n, meeting))
            continue;
        if (mesh_check (n->mesh, err) < 0)
            return fail_node_group (n, err);
        if (now - begin > mesh_timeout (n->mesh)) {
            mesh_timed_out (n->mesh, awaited_node_rank (n, meeting), err);
            return fail_node_group (n, err);
        }
        look = now;
    }
    mesh_set_waits (n->mesh, -1);
    return 0;
}

/* Compare our call with that of our neighbour. */
static int check_call (struct node_group *n, uint64_t meeting, struct slurmdl_error *err)
{
    long r = (n->rank + 1) % n->size;
    const struct node_rank *other = &n->head->ranks[r];

    if (other->call[meeting % NODE_METERS] == n->call)
        return 0;
    if (mesh_compare (n->mesh, n->world[r], other->tag[meeting % NODE_METERS], err) == 0)
        mesh_fail (n->mesh, EPROTO, err,
                   "the same call of rank %ld and rank %ld has different "
                   "numbers of bytes",
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
static void yield (struct node_group *n, uint64_t meeting)
{
    double then = monotonic (), now;

    if (n->left > 0) {
        n->left--;
        return;
    }
    for (int i = 0; i < YIELDS && !is_barrier_complete (n, meeting); i++, then = now) {
        sched_yield ();
        now = monotonic ();
        if (now - then > SLOW_TURN) {
            skip_more_yields (n);
            return;
        }
    }
    n->crowded = 0;
}

int node_wait (struct node_group *n, uint64_t meeting, struct slurmdl_error *err)
{
    struct slurmdl_error own = { "" };

    if (!err)
        err = &own;
    for (int i = 0; i < SPINS && !is_barrier_complete (n, meeting); i++)
        pause_cpu ();
    if (!is_barrier_complete (n, meeting))
        yield (n, meeting);
    if (!is_barrier_complete (n, meeting) && sleep_at_barrier (n, meeting, err) < 0)
        return -1;
    return check_call (n, meeting, err);
}
