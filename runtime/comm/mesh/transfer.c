/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two ranks, non-blocking in both directions at once. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mesh/channel.h"

/* A batch fits into a core's cache. */
enum { HEAD = sizeof (struct mesh_head), RECORDS = 4, SPIN_US = 30 };
enum { AT_ONCE = RECORDS * MESH_RECORD, PIECES = 2 + 3 * RECORDS };

/* One direction of an exchange, a batch of records at a time. */
struct side {
    long peer; /* -1: done */
    int fd;    /* -1: not connected yet */
    struct net_seal *seal;
    struct mesh_head head;
    unsigned char head_tag[SEAL_TAG];
    struct iovec data[2];
    size_t n;
    bool begun;       /* the head was in an earlier batch */
    size_t at, size;  /* bytes of the data in this batch */
    size_t all, done; /* all bytes of the batch with head and tags; those already moved */
    int checked;      /* records checked so far, counting the head first */
    unsigned char tag[RECORDS][SEAL_TAG];
};

struct mesh_transfer {
    struct mesh *m;
    const struct mesh_sendrecv *t;
    struct side out, in;
    double began, until, spin;
    bool slept;
    unsigned seconds;
    struct slurmdl_error *err;
};

/* seconds for our listener to hand over an existing connection */
static const double LISTENER_HANDOVER_SECONDS = 1;

/* ---- batches ---- */

static int count_records (const struct side *s)
{
    return (int)((s->size + MESH_RECORD - 1) / MESH_RECORD);
}

static size_t size_of_record (const struct side *s, int i)
{
    size_t left = s->size - (size_t)i * MESH_RECORD;

    return left < MESH_RECORD ? left : MESH_RECORD;
}

static void open_batch (struct side *s)
{
    size_t tag = seal_size (s->seal);

    s->size = s->n - s->at < AT_ONCE ? s->n - s->at : AT_ONCE;
    s->all = (s->begun ? 0 : HEAD + tag) + s->size + (size_t)count_records (s) * tag;
    s->done = 0;
    s->checked = s->begun;
}

/* The bytes of record 'i' in place: one piece or two. */
static int record_pieces (const struct side *s, int i, struct iovec *v)
{
    size_t skip = s->at + (size_t)i * MESH_RECORD;
    size_t left = size_of_record (s, i);
    int n = 0;

    for (int k = 0; k < 2 && left > 0; k++) {
        size_t cut = skip < s->data[k].iov_len ? skip : s->data[k].iov_len;
        size_t len = s->data[k].iov_len - cut;
        skip -= cut;
        len = len < left ? len : left;
        left -= len;
        if (len > 0)
            v[n++] = (struct iovec){ (char *)s->data[k].iov_base + cut, len };
    }
    return n;
}

/* Receive data to be reduced into the buffer. */
static int place_records (struct mesh_transfer *x, struct side *s, int i, struct iovec *v)
{
    if (s != &x->in || !x->t->reduce)
        return record_pieces (s, i, v);
    *v = (struct iovec){ x->m->buffer + (size_t)i * MESH_RECORD, size_of_record (s, i) };
    return 1;
}

/* The parts of the batch that remain to be moved. */
static int remaining_vectors (struct mesh_transfer *x, struct side *s, struct iovec *v)
{
    size_t tag = seal_size (s->seal);
    size_t skip = s->done;
    struct iovec all[PIECES];
    int n = 0, left = 0;

    if (!s->begun) {
        all[n++] = (struct iovec){ &s->head, HEAD };
        all[n++] = (struct iovec){ s->head_tag, tag };
    }
    for (int i = 0; i < count_records (s); i++) {
        n += place_records (x, s, i, all + n);
        all[n++] = (struct iovec){ s->tag[i], tag };
    }
    for (int i = 0; i < n; i++) {
        size_t cut = skip < all[i].iov_len ? skip : all[i].iov_len;
        skip -= cut;
        if (all[i].iov_len > cut)
            v[left++] = (struct iovec){ (char *)all[i].iov_base + cut, all[i].iov_len - cut };
    }
    return left;
}

/* Return a record in one piece, copying it if it is in two. */
static const void *whole_record (struct mesh_transfer *x, struct side *s, int i)
{
    struct iovec v[2] = { { NULL, 0 }, { NULL, 0 } };
    char *copy = x->m->record;

    if (place_records (x, s, i, v) < 2)
        return v[0].iov_base;
    memcpy (copy, v[0].iov_base, v[0].iov_len);
    memcpy (copy + v[0].iov_len, v[1].iov_base, v[1].iov_len);
    return copy;
}

/* ---- sending ---- */

static void seal_batch (struct mesh_transfer *x)
{
    struct side *s = &x->out;

    open_batch (s);
    if (!s->seal)
        return;
    if (!s->begun)
        seal_make (s->seal, &s->head, HEAD, s->head_tag);
    for (int i = 0; i < count_records (s); i++)
        seal_make (s->seal, whole_record (x, s, i), size_of_record (s, i), s->tag[i]);
}

/* The batch is complete.  Returns true if it was the last. */
static bool end_batch (struct side *s)
{
    s->begun = true;
    s->at += s->size;
    if (s->at < s->n)
        return false;
    s->peer = -1;
    return true;
}

enum moved { MOVE_FAILED = -1, MOVED_NOTHING, MOVED_SOME };

static enum moved push (struct mesh_transfer *x)
{
    struct side *s = &x->out;
    struct iovec v[PIECES];
    struct msghdr h = { .msg_iov = v };
    ssize_t n;

    h.msg_iovlen = (size_t)remaining_vectors (x, s, v);
    n = sendmsg (s->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? MOVED_NOTHING
                                                 : mesh_lost (x->m, s->peer, x->err);
    s->done += (size_t)n;
    if (s->done == s->all && !end_batch (s))
        seal_batch (x);
    return MOVED_SOME;
}

/* ---- receiving ---- */

static int fail_header (struct mesh_transfer *x)
{
    const struct side *s = &x->in;

    if (s->head.tag != atomic_load (&x->m->root->tag))
        return mesh_clash (x->m, s->peer, s->head.tag, x->err);
    return mesh_fail (x->m, EPROTO, x->err,
                      "rank %ld on %s sends %llu bytes, rank %ld expects %zu: "
                      "the sizes of the same call differ",
                      mesh_world_rank (x->m, s->peer), mesh_host (x->m, s->peer),
                      (unsigned long long)s->head.size, x->m->endpoint->rank, s->n);
}

static int check_head (struct mesh_transfer *x)
{
    const struct side *s = &x->in;

    if (s->head.magic == HEAD_MESSAGE && s->head.tag == atomic_load (&x->m->root->tag)
        && s->head.size == s->n)
        return 0;
    if (s->head.magic == HEAD_MESSAGE)
        return fail_header (x);
    return mesh_fail (x->m, ECONNRESET, x->err, "rank %ld on %s has closed its communicator",
                      mesh_world_rank (x->m, s->peer), mesh_host (x->m, s->peer));
}

/* Check the records of the batch that have arrived completely. */
static int check_records (struct mesh_transfer *x)
{
    struct side *s = &x->in;
    size_t tag = seal_size (s->seal);
    size_t head = s->begun ? 0 : HEAD + tag;

    if (s->checked == 0) {
        if (s->done < head)
            return 0;
        if (seal_check (s->seal, &s->head, HEAD, s->head_tag) < 0)
            return mesh_altered (x->m, s->peer, x->err);
        if (check_head (x) < 0)
            return -1;
        s->checked = 1;
    }
    for (int i = s->checked - 1; i < count_records (s); i++) {
        size_t size = size_of_record (s, i);
        size_t first = (size_t)i * MESH_RECORD;
        if (s->done < head + first + size + (size_t)(i + 1) * tag)
            break;
        if (s->seal && seal_check (s->seal, whole_record (x, s, i), size, s->tag[i]) < 0)
            return mesh_altered (x->m, s->peer, x->err);
        if (x->t->reduce)
            x->t->reduce (x->t->arg, s->at + first, x->m->buffer + first, size);
        s->checked++;
    }
    return 0;
}

static enum moved pull (struct mesh_transfer *x)
{
    struct side *s = &x->in;
    struct iovec v[PIECES];
    struct msghdr h = { .msg_iov = v };
    ssize_t n;

    h.msg_iovlen = (size_t)remaining_vectors (x, s, v);
    n = recvmsg (s->fd, &h, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return MOVED_NOTHING;
    if (n <= 0)
        return mesh_lost (x->m, s->peer, x->err);
    s->done += (size_t)n;
    if (check_records (x) < 0)
        return MOVE_FAILED;
    if (s->done == s->all && !end_batch (s))
        open_batch (s);
    return MOVED_SOME;
}

static void clear_listener_event (struct mesh *m)
{
    eventfd_t value;

    eventfd_read (m->event, &value);
}

static long awaited_rank (const struct mesh_transfer *x)
{
    return x->in.peer >= 0 ? x->in.peer : x->out.peer;
}

/* Whether the rank that we wait for has connected. */
static bool find_link (struct mesh_transfer *x)
{
    const struct mesh_link *link = &x->m->links[x->in.peer];

    x->in.fd = atomic_load (&link->in);
    if (x->in.fd < 0)
        return false;
    x->in.seal = link->in_seal;
    open_batch (&x->in);
    return true;
}

/* A peer that has closed may have connected before and sent everything we wait
 * for.  Our listener is about to tell us.
 */
static int await_link (struct mesh_transfer *x)
{
    struct mesh *m = x->m;
    struct pollfd p = { .fd = m->event, .events = POLLIN };
    double until = monotonic () + LISTENER_HANDOVER_SECONDS;

    for (;;) {
        if (find_link (x))
            return 0;
        if (atomic_load (&m->aborted))
            return mesh_usable (m, x->err);
        if (monotonic () > until)
            return mesh_lost (m, x->in.peer, x->err);
        poll (&p, 1, 20);
        clear_listener_event (m);
    }
}

/* Find out whether a rank that has not connected is still alive. */
static int probe_sender (struct mesh_transfer *x)
{
    enum mesh_presence peer;

    if (x->in.peer < 0 || x->in.fd >= 0 || monotonic () < x->began + 0.05)
        return 0;
    peer = mesh_probe_peer (x->m, x->in.peer, x->err);
    return peer == PEER_FAILED ? -1 : peer == PEER_ENDED ? await_link (x) : 0;
}

/* Check whether the peer that we wait for has closed our connection to it. */
static int check_hangup (struct mesh_transfer *x, const struct pollfd *p)
{
    if (x->in.peer >= 0 && x->in.fd < 0 && p[3].revents && await_link (x) < 0)
        return -1;
    if (x->out.peer >= 0 && (p[1].revents & (POLLERR | POLLHUP | POLLRDHUP)))
        return mesh_lost (x->m, x->out.peer, x->err);
    return 0;
}

/* For a rank that has not connected, watch our own connection to it. */
static int check_hosts (struct mesh_transfer *x)
{
    struct mesh *m = x->m;
    const struct side *in = &x->in;
    int fd = in->fd;

    if (in->peer >= 0 && fd < 0)
        fd = atomic_load (&m->links[in->peer].out);
    if (in->peer >= 0 && mesh_is_unreachable (m, in->peer, fd))
        return mesh_lost (m, in->peer, x->err);
    if (x->out.peer >= 0 && mesh_is_unreachable (m, x->out.peer, x->out.fd))
        return mesh_lost (m, x->out.peer, x->err);
    return 0;
}

/* Check on peers after a second without progress.  Compare calls in the first four
 * seconds, and every 16 seconds later.
 */
static int look_around (struct mesh_transfer *x)
{
    unsigned n = x->seconds++;

    if (check_hosts (x) < 0)
        return -1;
    if (x->in.peer >= 0 && (n < 4 || n % 16 == 0) && mesh_check_call (x->m, x->in.peer, x->err) < 0)
        return -1;
    if (monotonic () > x->until)
        return mesh_timed_out (x->m, awaited_rank (x), x->err);
    return 0;
}

static int sleep_on (struct mesh_transfer *x)
{
    struct mesh *m = x->m;
    struct pollfd p[4];
    int ms = 1000;

    if (probe_sender (x) < 0)
        return -1;
    p[0] = (struct pollfd){ .fd = m->event, .events = POLLIN };
    p[1] =
        (struct pollfd){ .fd = x->out.peer >= 0 ? x->out.fd : -1, .events = POLLOUT | POLLRDHUP };
    p[2] = (struct pollfd){ .fd = x->in.peer >= 0 ? x->in.fd : -1, .events = POLLIN };
    p[3] = (struct pollfd){ .fd = -1, .events = POLLRDHUP };
    if (x->in.peer >= 0 && x->in.fd < 0) {
        p[3].fd = m->links[x->in.peer].out;
        ms = p[3].fd < 0 ? 50 : 1000;
    }
    mesh_set_waits (m, awaited_rank (x));
    x->slept = true;
    if (poll (p, 4, ms) <= 0)
        return look_around (x);
    if (p[0].revents)
        clear_listener_event (m);
    if (atomic_load (&m->aborted))
        return mesh_usable (m, x->err);
    return check_hangup (x, p);
}

/* Spinning is faster than sleeping if the peer is about to answer, and a waste
 * otherwise.
 */
static bool spins (struct mesh_transfer *x, double now)
{
    struct mesh *m = x->m;

    if (!m->may_spin || (m->missed > 8 && m->missed % 64))
        return false;
    if (x->spin == 0)
        x->spin = now + SPIN_US * 1e-6;
    return now < x->spin;
}

/* Nothing can be moved now: spin or sleep. */
static int rest_a_while (struct mesh_transfer *x)
{
    double now = monotonic ();

    if (x->until == 0)
        x->until = now + x->m->timeout;
    if (spins (x, now))
        return 0;
    x->m->missed++;
    return sleep_on (x);
}

/* Something was moved: reset the timers. */
static void refresh (struct mesh_transfer *x)
{
    if (x->spin > 0 && monotonic () < x->spin)
        x->m->missed = 0;
    x->until = x->spin = 0;
}

static enum moved move_once (struct mesh_transfer *x)
{
    enum moved out = MOVED_NOTHING;
    enum moved in = MOVED_NOTHING;

    if (x->in.peer >= 0 && x->in.fd < 0)
        find_link (x);
    if (x->out.peer >= 0)
        out = push (x);
    if (out != MOVE_FAILED && x->in.peer >= 0 && x->in.fd >= 0)
        in = pull (x);
    return out == MOVE_FAILED ? out : in == MOVED_NOTHING ? out : in;
}

static int run_transfer (struct mesh_transfer *x)
{
    while (x->out.peer >= 0 || x->in.peer >= 0) {
        enum moved moved = move_once (x);
        if (moved == MOVE_FAILED)
            return -1;
        if (moved == MOVED_SOME)
            refresh (x);
        else if (rest_a_while (x) < 0)
            return -1;
    }
    if (x->slept)
        mesh_set_waits (x->m, -1);
    return 0;
}

static size_t iovec_bytes (const struct iovec *v)
{
    return v[0].iov_len + v[1].iov_len;
}

/* Whether a record may lie in two places. */
static bool is_split (const struct mesh_sendrecv *t)
{
    return (t->out[0].iov_len && t->out[1].iov_len) || (t->in[0].iov_len && t->in[1].iov_len);
}

/* Copy what a rank sends to itself. */
static int to_self (struct mesh *m, const struct mesh_sendrecv *t)
{
    size_t n = t->in[0].iov_len;

    (void)m;
    if (n > 0)
        memmove (t->in[0].iov_base, t->out[0].iov_base, n);
    return 0;
}

int mesh_sendrecv (struct mesh *m, const struct mesh_sendrecv *t, struct slurmdl_error *err)
{
    struct mesh_transfer x = { .m = m, .t = t, .err = err };

    if (mesh_usable (m, err) < 0)
        return -1;
    if (t->to == m->rank && t->from == m->rank)
        return to_self (m, t);
    if (t->reduce && !m->buffer && !(m->buffer = malloc (AT_ONCE)))
        return mesh_fail (m, ENOMEM, err, "out of memory");
    if (is_split (t) && !m->record && !(m->record = malloc (MESH_RECORD)))
        return mesh_fail (m, ENOMEM, err, "out of memory");
    x.out =
        (struct side){ .peer = t->to,
                       .fd = -1,
                       .head = { HEAD_MESSAGE, atomic_load (&m->root->tag), iovec_bytes (t->out) },
                       .data = { t->out[0], t->out[1] },
                       .n = iovec_bytes (t->out) };
    x.in = (struct side){ .peer = t->from,
                          .fd = -1,
                          .data = { t->in[0], t->in[1] },
                          .n = t->reduce ? t->reduce_n : iovec_bytes (t->in) };
    x.began = monotonic ();
    if (t->to >= 0) {
        if ((x.out.fd = mesh_dial (m, t->to, err)) < 0)
            return -1;
        x.out.seal = m->links[t->to].out_seal;
        seal_batch (&x);
    }
    return run_transfer (&x);
}

int mesh_exchange (struct mesh *m, long to, const void *out, size_t nout, long from, void *in,
                   size_t nin, struct slurmdl_error *err)
{
    struct mesh_sendrecv t = {
        .to = to, .from = from, .out = { { (void *)out, nout } }, .in = { { in, nin } }
    };

    return mesh_sendrecv (m, &t, err);
}

int mesh_send (struct mesh *m, long to, const void *data, size_t n, struct slurmdl_error *err)
{
    return mesh_exchange (m, to, data, n, -1, NULL, 0, err);
}

int mesh_recv (struct mesh *m, long from, void *data, size_t n, struct slurmdl_error *err)
{
    return mesh_exchange (m, -1, NULL, 0, from, data, n, err);
}
