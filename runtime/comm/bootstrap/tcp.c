/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap over TCP: all ranks connect to a port of rank 0. */
#include "runtime/comm/bootstrap/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/socket.h"
#include "runtime/rank/layout.h"

struct lookup;

struct lookup {
    atomic_int users; /* the thread and its creator */
    atomic_bool known;
    char name[256], address[NI_MAXHOST];
};

static void release_lookup (struct lookup *l)
{
    if (atomic_fetch_sub (&l->users, 1) == 1)
        free (l);
}

static void *lookup_main (void *arg)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    struct lookup *l = arg;

    if (getaddrinfo (l->name, NULL, &hints, &list) == 0) {
        if (getnameinfo (list->ai_addr, list->ai_addrlen, l->address, sizeof (l->address), NULL, 0,
                         NI_NUMERICHOST)
            == 0)
            atomic_store (&l->known, true);
        freeaddrinfo (list);
    }
    release_lookup (l);
    return NULL;
}

/* Start a thread that resolves the name.  Returns NULL on failure; lookup_answer()
 * then always returns NULL.
 */
static struct lookup *lookup_start (const char *name)
{
    struct lookup *l = calloc (1, sizeof (*l));
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;
    int code;

    if (!l)
        return NULL;
    snprintf (l->name, sizeof (l->name), "%s", name);
    atomic_init (&l->users, 2);
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &old);
    pthread_attr_init (&attr);
    pthread_attr_setdetachstate (&attr, PTHREAD_CREATE_DETACHED);
    code = pthread_create (&thread, &attr, lookup_main, l);
    pthread_attr_destroy (&attr);
    pthread_sigmask (SIG_SETMASK, &old, NULL);
    if (code == 0)
        return l;
    free (l);
    return NULL;
}

/* The first address as text, which lives as long as 'l'.  Returns NULL if it is not
 * known yet or does not exist.
 */
static const char *lookup_answer (const struct lookup *l)
{
    return l && atomic_load (&l->known) ? l->address : NULL;
}

/* Release the lookup; its thread ends by itself.  Accepts NULL and preserves errno. */
static void lookup_leave (struct lookup *l)
{
    int saved = errno;

    if (l)
        release_lookup (l);
    errno = saved;
}

enum {
    ATTEMPT_S = 5, /* for an attempt to connect */
    NOTICE_S = 1,  /* for the notice, before ranks with the secret look elsewhere */
    ASK_S = 2,     /* for srun's answer */
    LINGER_S = 5,  /* for the others to read why rank 0 has ended */
    SPARE_FILES = 64
};

/* Extra time for the others, so that rank 0 can tell them which ranks are missing. */
static const double slack = 2;

/* Each rank that connects needs an open file in rank 0. */
static void raise_limit (long files)
{
    struct rlimit l;
    rlim_t want = (rlim_t)files + SPARE_FILES;

    if (getrlimit (RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= want)
        return;
    l.rlim_cur = want < l.rlim_max ? want : l.rlim_max;
    setrlimit (RLIMIT_NOFILE, &l);
}

static void pause_ms (long ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
    int saved = errno;

    nanosleep (&ts, NULL);
    errno = saved;
}

/* Whether other ranks try p->port: the user named it, or ranks with the secret cannot learn of any
 * other port.  Other users may know that port and listen there.
 */
static bool is_port_known (const struct boot_place *p)
{
    return p->is_named || !*p->notice || (p->has_key && !board_is_there ());
}

/* ---- rank 0 ---- */

static int fail_missing_ranks (const struct boot_accept *m, struct slurmdl_error *err)
{
    const struct boot_place *p = m->place;
    char names[160];

    boot_name_ranks (names, sizeof (names), m->missing, p->size, p->layout);
    errorf (err, "%ld of %ld ranks did not connect within %g s: %s%s%s", m->left, p->size,
            p->timeout, names,
            p->post.is_posted || !*p->post.why.text
                ? ""
                : "; the address of rank 0 could not be posted with ",
            p->post.is_posted ? "" : p->post.why.text);
    errno = ETIMEDOUT;
    return -1;
}

/* Listen on any port, unless others look at a certain one.  If that is taken, use
 * any other.
 */
static int open_any (struct boot_place *p, struct slurmdl_error *err)
{
    if (is_port_known (p) && listen_open (&p->listener, p->host, p->port) == 0)
        return 0;
    if (!boot_is_loopback (p->host))
        return listen_open_range (&p->listener, NULL, 0, err);
    return listen_open (&p->listener, p->host, 0) < 0 ? errorf (err, "%s", strerror (errno)) : 0;
}

/* Post with srun only if the ranks have the secret, which srun does not get.  Rank
 * 0 with the secret but no way to publish can still listen where others look for
 * it.
 */
static int publish_root (struct boot_place *p, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    char notice[BOOT_NOTICE];

    if (!p->has_key && getrandom (p->key, sizeof (p->key), 0) < 0)
        return errorf (err, "getrandom: %s", strerror (errno));
    boot_compose (p, notice);
    if (p->has_key)
        board_post (&p->post, p->key, p->notice, notice);
    if (notice_put (p->notice, notice, &why) == 0)
        return 0;
    if (!p->has_key)
        return errorf (err,
                       "there is no secret for the ranks: %s; start them with "
                       "srun --dl=torch, or set DL_SECRET to 32 hexadecimal digits",
                       why.text);
    if (p->post.is_on || p->listener.port == p->port)
        return 0;
    listen_close (&p->listener);
    return errorf (err,
                   "rank 0 (%s) cannot listen on port %d, which is in use, and cannot publish "
                   "another one: %s: fix that, or set "
                   "DL_COMM_ADDRESS to HOST:PORT with a free port",
                   p->own, p->port, why.text);
}

/* Do not let the others wait for what will never come. srun also tells ranks that
 * arrive later.
 */
static void publish_boot_failure (struct boot_place *p, const char *why)
{
    char notice[BOOT_NOTICE];
    int saved = errno;
    bool kept = false;

    boot_compose_failure (why, notice);
    board_end (&p->post);
    if (*p->notice && p->has_key)
        kept = board_keep (p->key, p->notice, notice, monotonic () + ASK_S) == 0;
    if (*p->notice && notice_put (p->notice, notice, NULL) == 0)
        p->linger = kept ? NOTICE_S : LINGER_S;
    errno = saved;
}

static void linger (const struct boot_place *p)
{
    pause_ms (p->linger * 1000L);
    notice_remove (p->notice);
}

static int open_root_listener (struct boot_place *p, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };

    if (p->listener.n > 0)
        return 0;
    if (open_any (p, &why) == 0)
        return publish_root (p, err);
    errorf (err, "rank 0 (%s) cannot listen: %s", p->own, why.text);
    publish_boot_failure (p, err->text);
    return -1;
}

/* Remove the notice: everybody expected has read it, or is too late. */
static void remove_notice (struct boot_place *p)
{
    if (*p->notice)
        notice_remove (p->notice);
    board_end (&p->post);
}

static int accept_all_ranks (struct boot_tree *t, struct boot_place *p, struct slurmdl_error *err)
{
    struct boot_accept m;
    int rv = -1;

    if (open_root_listener (p, err) < 0)
        return -1;
    raise_limit (p->size);
    if (boot_accept_open (&m, p, &p->listener) < 0) {
        remove_notice (p);
        goto out;
    }
    m.post = &p->post;
    for (long r = 1; r < p->size; r++)
        boot_accept_expect (&m, r);
    rv = boot_accept_run (&m, monotonic () + p->timeout);
    if (rv < 0 && errno == ETIMEDOUT)
        fail_missing_ranks (&m, err);
    else if (rv < 0 && errno == EOPNOTSUPP)
        errorf (err, "%s", m.differs.text);
    if (rv == 0 || errno == ETIMEDOUT)
        remove_notice (p);
    else
        publish_boot_failure (p, *err->text ? err->text : strerror (errno));
    if (boot_accept_end (&m, t) < 0)
        rv = -1;
    if (rv == 0)
        rv = boot_tree_build (t, p, err);
out:
    if (rv < 0)
        errorf (err, "rank 0 (%s): %s", p->own, strerror (errno));
    boot_accept_close (&m);
    return rv;
}

/* ---- other ranks ---- */

/* The result of one attempt to join the ranks at an address.  JOIN_RETRY: no process answered, or
 * one without the secret did.
 */
enum join_result { JOIN_FAILED = -1, JOINED, JOIN_RETRY };

static enum join_result hear_answer (struct boot_tree *t, const struct boot_place *p,
                                     struct listen_sockets *listener, struct slurmdl_error *err)
{
    struct net_stream *w = &t->parent.stream;
    size_t most =
        BOOT_TEXT + sizeof (struct boot_welcome) + (size_t)p->size * sizeof (struct boot_child);

    if (net_stream_wait (w, most, monotonic () + p->timeout + slack) == STREAM_FAILED)
        return errno == EBADMSG ? boot_say_altered (&t->parent, err) : JOIN_RETRY;
    if (p->heard)
        *p->heard = true;
    switch (w->head.kind) {
    case BOOT_WELCOME:
        return boot_tree_move (t, p, listener, err);
    case BOOT_REFUSED:
        errno = EEXIST;
        return errorf (err, "rank 0 (%s): %s", t->parent.from, clean_text (w->body));
    case BOOT_FAILED:
        return errorf (err, "%s", boot_tree_reason (w));
    }
    errno = EPROTO;
    return JOIN_RETRY;
}

static enum join_result introduce_at (struct boot_tree *t, const struct boot_place *p,
                                      struct listen_sockets *listener, double deadline,
                                      struct slurmdl_error *err)
{
    double until = monotonic () + ATTEMPT_S;
    enum join_result result = JOIN_RETRY;

    /* a process that listens there but stays silent may be another user's */
    if (boot_introduce (t, p, listener->n ? listener->port : 0, false,
                        until < deadline ? until : deadline)
        == 0)
        result = hear_answer (t, p, listener, err);
    else if (errno == EOPNOTSUPP)
        result = boot_say_differs (p->plain, p->rank, p->own, err);
    if (result != JOINED) {
        int saved = errno;
        boot_peer_close (&t->parent);
        errno = saved;
    }
    return result;
}

static enum join_result join_leader (struct boot_tree *t, const struct boot_place *p,
                                     struct slurmdl_error *err)
{
    int fd = boot_node_connect (p);
    struct listen_sockets none = { 0 };

    if (fd < 0)
        return JOIN_RETRY;
    boot_peer_init (&t->parent, fd, NULL);
    t->parent.rank = boot_node_leader (p);
    memcpy (t->parent.host, p->own, sizeof (t->parent.host));
    return introduce_at (t, p, &none, monotonic () + p->timeout, err);
}

/* Whether this rank is on the node of rank 0, where loopback leads to it. */
static bool is_beside_root (const struct boot_place *p)
{
    const struct rank_layout *l = p->layout;

    return l && l->node_of[p->rank] == l->node_of[0];
}

/* Where to find rank 0 without its notice.  Returns NULL if that is unknown, or if rank 0 cannot be
 * there: the address is loopback, and rank 0 is on another node.
 */
static const char *host_of_root (const struct boot_place *p, struct lookup *name)
{
    const char *host = p->nearby ? lookup_answer (name) : p->host;

    if (!host && is_beside_root (p))
        return "127.0.0.1";
    return *p->notice && host && boot_is_loopback (host) && p->layout && !is_beside_root (p) ? NULL
                                                                                             : host;
}

static int connect_to_root (const char *host, int port, double deadline)
{
    double until = monotonic () + ATTEMPT_S;

    errno = EHOSTUNREACH;
    return host ? socket_connect (host, port, until < deadline ? until : deadline) : -1;
}

/* The result of reading what rank 0 published.  SOURCE_EMPTY: nothing yet.
 * SOURCE_FAILED: nothing will come, or rank 0 published why it failed.
 */
enum source_result { SOURCE_FAILED = -1, SOURCE_FOUND, SOURCE_EMPTY };

static enum source_result parse_published (const char *text, struct boot_place *found,
                                           struct slurmdl_error *err)
{
    if (boot_parse (found, text, err) == 0)
        return SOURCE_FOUND;
    return errno == ECONNREFUSED ? SOURCE_FAILED : SOURCE_EMPTY;
}

static enum source_result read_notice (const struct boot_place *p, struct boot_place *found,
                                       struct slurmdl_error *err)
{
    char text[NOTICE_TEXT];

    *found = *p;
    if (notice_get (p->notice, text, err) < 0)
        return errno == ENOENT || errno == ESTALE ? SOURCE_EMPTY : SOURCE_FAILED;
    return parse_published (text, found, err);
}

/* Wait for the secret, which the ranks of a node need to connect; that has no timeout of its own.
 */
static int await_secret (struct boot_place *p)
{
    double deadline = monotonic () + p->timeout / 4;
    struct boot_place found;
    enum source_result got;

    while ((got = read_notice (p, &found, NULL)) == SOURCE_EMPTY && monotonic () < deadline)
        pause_ms (10);
    if (got != SOURCE_FOUND)
        return -1;
    memcpy (p->key, found.key, sizeof (p->key));
    return 0;
}

/* State of the search for rank 0. */
struct boot_search {
    struct lookup *name;
    double begun;
    double ask, gap;            /* next time to ask srun, and the interval */
    struct slurmdl_error board; /* why srun did not give the address */
    char tried[300];            /* address where no process with the secret answered, or "" */
    bool impostor;              /* a process without the secret answered */
};

/* Use other sources only once the notice should have appeared, or cannot appear. */
static bool is_source_due (const struct boot_search *s, enum source_result notice)
{
    return notice == SOURCE_FAILED || monotonic () > s->begun + NOTICE_S;
}

/* The number of ranks that may query srun.  In a large step, that is one per node, plus the ranks
 * on the node of rank 0 that do not see its notice: at most as many as one node has.
 */
static double count_srun_clients (const struct boot_place *p)
{
    const struct rank_layout *l = p->size > BOOT_STAR ? p->layout : NULL;

    return (double)(l ? l->nodes + l->most : p->size);
}

/* Limit the queries of all ranks together to a thousand per second at first, and to fewer later.
 */
static bool may_ask_srun (const struct boot_place *p, struct boot_search *s,
                          enum source_result notice)
{
    double now = monotonic ();

    if (!p->has_key || !*p->notice || !board_is_there () || !is_source_due (s, notice))
        return false;
    if (s->gap == 0) {
        s->gap = 0.05 + count_srun_clients (p) / 1000;
        s->ask = now + s->gap * (double)(p->rank % 101) / 101;
    }
    if (now < s->ask)
        return false;
    s->ask = now + s->gap;
    s->gap = s->gap > 0.2 + count_srun_clients (p) / 1000 ? s->gap : s->gap * 2;
    return true;
}

/* Like read_notice(), but from srun. */
static enum source_result read_board (const struct boot_place *p, struct boot_search *s,
                                      struct boot_place *found, struct slurmdl_error *err)
{
    char text[NOTICE_TEXT];

    *found = *p;
    s->board = (struct slurmdl_error){ "" };
    if (board_get (p->key, p->notice, text, monotonic () + ASK_S, &s->board) < 0)
        return SOURCE_EMPTY;
    *err = (struct slurmdl_error){ "" };
    return parse_published (text, found, err);
}

/* Returns SOURCE_EMPTY with ENOENT if no source has the address of rank 0. */
static enum source_result find_rank0 (const struct boot_place *p, struct boot_search *s,
                                      struct boot_place *found, struct slurmdl_error *err)
{
    enum source_result notice = *p->notice ? read_notice (p, found, err) : SOURCE_EMPTY;
    enum source_result board;
    const char *host;

    if (notice == SOURCE_FOUND
        || (notice == SOURCE_FAILED && (errno == ECONNREFUSED || !p->has_key)))
        return notice;
    if (may_ask_srun (p, s, notice) && (board = read_board (p, s, found, err)) != SOURCE_EMPTY)
        return board;
    *found = *p;
    errno = ENOENT;
    if (*p->notice && (!p->has_key || !is_port_known (p) || !is_source_due (s, notice)))
        return SOURCE_EMPTY;
    errno = EHOSTUNREACH;
    if (!(host = host_of_root (p, s->name)))
        return SOURCE_EMPTY;
    snprintf (found->host, sizeof (found->host), "%s", host);
    return SOURCE_FOUND;
}

static enum join_result try_root (struct boot_tree *t, struct boot_place *p, struct boot_search *s,
                                  struct listen_sockets *listener, struct slurmdl_error *err)
{
    double deadline = s->begun + p->timeout;
    struct boot_place found;
    enum source_result source = find_rank0 (p, s, &found, err);
    int fd;

    if (source != SOURCE_FOUND)
        return source == SOURCE_FAILED ? JOIN_FAILED : JOIN_RETRY;
    memcpy (p->key, found.key, sizeof (p->key));
    snprintf (s->tried, sizeof (s->tried), "%s:%d", found.host, found.port);
    fd = connect_to_root (found.host, found.port, deadline);
    if (fd < 0)
        return JOIN_RETRY;
    *err = (struct slurmdl_error){ "" };
    boot_peer_init (&t->parent, fd, NULL);
    t->parent.rank = 0;
    return introduce_at (t, p, listener, deadline, err);
}

static int explain_no_answer (const struct boot_place *p, const struct slurmdl_error *why,
                              const struct boot_search *s, struct slurmdl_error *err)
{
    const char *text = *why->text ? why->text : strerror (errno);
    const char *more = p->has_key ? "" : "without DL_SECRET all ranks need the same home directory";

    if (*s->board.text)
        more = s->board.text;
    if (s->impostor)
        text = "the process that listens there does not know this step's secret";
    if (*s->tried)
        errorf (err, "rank 0 did not answer at %s within %g s: %s", s->tried, p->timeout, text);
    else
        errorf (err, "rank 0 has published no address within %g s: %s%s%s", p->timeout, text,
                *more ? "; " : "", more);
    errno = ETIMEDOUT;
    return -1;
}

static int join_root (struct boot_tree *t, struct boot_place *p, struct listen_sockets *listener,
                      struct slurmdl_error *err)
{
    struct boot_search s = { .begun = monotonic () };
    struct slurmdl_error why;
    enum join_result result;
    long wait = 5;

    if (is_port_known (p)) {
        snprintf (s.tried, sizeof (s.tried), "%s:%d", p->host, p->port);
        s.name = p->nearby ? lookup_start (p->host) : NULL;
    }
    /* rank 0 may not listen yet; spread the retries of the ranks */
    for (;;) {
        why = (struct slurmdl_error){ "" };
        result = try_root (t, p, &s, listener, &why);
        s.impostor |= result == JOIN_RETRY && errno == EACCES;
        if (result != JOIN_RETRY || monotonic () > s.begun + p->timeout)
            break;
        pause_ms (wait + (p->rank * 7) % (wait + 1));
        wait = wait < 200 ? wait * 2 : wait;
    }
    lookup_leave (s.name);
    if (result == JOIN_RETRY)
        return explain_no_answer (p, &why, &s, err);
    return result == JOIN_FAILED ? errorf (err, "%s", why.text) : 0;
}

static int join_boot_tree (struct boot_tree *t, struct boot_place *p, struct slurmdl_error *err)
{
    long leader = p->size > BOOT_STAR ? boot_node_leader (p) : -1;
    struct listen_sockets listener = { 0 };
    enum join_result result = JOIN_RETRY;
    int rv;

    /* the ranks of a node connect to a name derived from the secret */
    if (leader > 0 && *p->notice && !p->has_key && await_secret (p) < 0)
        leader = -1;
    if (leader == p->rank)
        boot_node_gather (t, p);
    else if (leader > 0)
        result = join_leader (t, p, err);
    if (result != JOIN_RETRY)
        return result == JOINED ? 0 : -1;
    if (p->size > BOOT_STAR && listen_open_range (&listener, NULL, 0, err) < 0)
        return -1;
    rv = join_root (t, p, &listener, err);
    listen_close (&listener);
    return rv;
}

int boot_tree_open (struct boot_tree *t, struct boot_place *p, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    int rv;

    memset (t, 0, sizeof (*t));
    boot_peer_init (&t->parent, -1, NULL);
    t->rank = p->rank;
    t->size = p->size;
    t->timeout = p->timeout;
    t->layout = p->layout;
    rv = p->rank == 0 ? accept_all_ranks (t, p, &why) : join_boot_tree (t, p, &why);
    if (rv < 0) {
        int saved = errno;
        boot_tree_tell (t, NULL, saved, why.text);
        t->broken = true;
        boot_tree_close (t, true);
        if (p->linger)
            linger (p);
        board_end (&p->post);
        errorf (err, "%s", why.text);
        errno = saved;
    }
    return rv;
}

void boot_tree_close (struct boot_tree *t, bool ours)
{
    if (t->broken && ours)
        boot_tree_drain (t);
    for (long i = 0; i < t->nchildren; i++)
        boot_peer_close (&t->children[i]);
    free (t->children);
    boot_peer_close (&t->parent);
    t->children = NULL;
    t->nchildren = 0;
}
