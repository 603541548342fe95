/* SPDX-License-Identifier: Apache-2.0 */
/* needs: root in part */
/* Check which of the results that other workers offer a worker accepts. */
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/worker/worker_private.h"
#include "tests/folder.h"
#include "tests/launcher/made.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccc"

static void apply (struct sweep *s, struct event e)
{
    struct slurmdl_error err = { "" };

    e.by = "w";
    if (sweep_apply (&e, s, &err) < 0)
        fail_msg ("%s", err.text);
}

static void begin (struct sweep *s, int64_t trial, const char *owner)
{
    double x = 0.5;

    apply (s,
           (struct event){
               .op = EVENT_BEGIN, .trial = trial, .length = 4, .owner = owner, .x = &x, .nx = 1 });
}

/* A, B and this worker run trials 1 to 3; trial 4's attempt was parked. */
static void make (struct worker *w)
{
    struct sweep *s =
        made_sweep (dir,
                    "name = \"t\"; entrypoint = \"true\";\n"
                    "searcher = { name = \"random\"; metric = \"a\"; max_trials = 9; "
                    "max_length = 4; };\n"
                    "hyperparameters = { x = { type = \"float\"; minval = 0; maxval = 1; "
                    "}; };\n",
                    0);

    assert_non_null (s);
    s->state = SWEEP_NEW;
    mkdir (in_dir ("workers"), 0777);
    *w = (struct worker){ .sweep = s, .slot = "w", .rivals = true };
    assert_non_null (w->peer = peer_create (s->dir, "w", NULL));
    apply (s, (struct event){ .op = EVENT_CREATE, .version = LOG_VERSION, .dir = "/", .seed = 1 });
    begin (s, 1, A);
    begin (s, 2, B);
    begin (s, 3, peer_self (w->peer)->nonce);
    begin (s, 4, C);
    apply (s, (struct event){ .op = EVENT_PARK, .trial = 4, .attempt = 1, .seconds = 1 });
}

static void unmake (struct worker *w)
{
    offer_withdraw (w);
    peer_destroy (w->peer);
    sweep_close (w->sweep);
}

static struct event result_of (int64_t trial, int64_t attempt, int64_t length)
{
    return (struct event){ .op = EVENT_RESULT,
                           .by = "w",
                           .trial = trial,
                           .attempt = attempt,
                           .length = length,
                           .seconds = 2,
                           .host = "n1",
                           .metric = 0.25 };
}

static const char *path_of (const char *nonce)
{
    static char name[80];

    snprintf (name, sizeof (name), "workers/%s.offer", nonce);
    return in_dir (name);
}

/* The worker's own file.  Its owner shows which user the worker runs as. */
static const char *worker_of (const char *nonce)
{
    static char name[80];

    snprintf (name, sizeof (name), "workers/%s", nonce);
    return in_dir (name);
}

/* Offer a result as the worker with this nonce.  If 'damage' is not 0, it replaces a byte. */
static void offer (const char *nonce, struct event result, char damage)
{
    double x = 0.5;
    struct event events[2] = {
        result,
        { .op = EVENT_BEGIN, .trial = 5, .length = 3, .x = &x, .nx = 1 },
    };
    char *text = journal_entry_text (events, 2);
    FILE *f = fopen (path_of (nonce), "w");

    assert_non_null (text);
    assert_non_null (f);
    if (damage)
        *strstr (text, "0.25") = damage;
    fputs (text, f);
    fclose (f);
    free (text);
    fclose (fopen (worker_of (nonce), "a"));
}

static size_t taken (struct worker *w)
{
    struct offers o;
    size_t n;

    offers_collect (w, 3, &o);
    n = o.n;
    offers_free (&o);
    return n;
}

FOLDER_CASE (what_is_taken)
{
    struct worker w;
    struct offers o;

    make (&w);
    offer (A, result_of (1, 1, 4), 0);
    offer (B, result_of (2, 1, 4), 0);
    offers_collect (&w, 3, &o);
    assert_int_equal (o.n, 2);
    for (size_t i = 0; i < o.n; i++) {
        assert_int_equal (o.list[i].result.trial, strcmp (o.list[i].nonce, A) ? 2 : 1);
        assert_true (o.list[i].result.metric == 0.25);
        assert_int_equal (o.list[i].length, 3);
    }
    offers_free (&o);
    w.rivals = false;
    assert_int_equal (taken (&w), 0);
    w.rivals = true;

    unlink (path_of (B));
    assert_int_equal (taken (&w), 1);
    /* the file belongs to another user, such as a group member */
    if (geteuid () == 0)
        assert_int_equal (chown (path_of (A), 61002, 61002), 0);
    else
        unlink (worker_of (A));
    assert_int_equal (taken (&w), 0);

    offer (C, result_of (4, 1, 4), 0); /* the attempt is over, so the offer is removed */
    assert_int_equal (taken (&w), 0);
    assert_int_equal (access (path_of (C), F_OK), -1);
    unmake (&w);
}

FOLDER_CASE (what_is_not_taken)
{
    struct event long_ago = result_of (1, 1, 4), nowhere = long_ago;
    struct worker w;

    long_ago.seconds = -1;
    nowhere.host = "-x";
    const struct {
        struct event result;
        char damage;
    } offers[] = {
        { result_of (1, 1, 4), '9' }, /* damaged */
        { result_of (2, 1, 4), 0 },   /* another worker's attempt */
        { result_of (1, 2, 4), 0 },   /* an attempt that has not started */
        { result_of (1, 1, 3), 0 },   /* the length is not the target */
        { result_of (99, 1, 4), 0 },  { long_ago, 0 }, { nowhere, 0 },
    };

    make (&w);
    for (size_t i = 0; i < COUNT (offers); i++) {
        offer (A, offers[i].result, offers[i].damage);
        assert_int_equal (taken (&w), 0);
    }
    unlink (path_of (A));
    assert_int_equal (symlink ("../t.conf", path_of (A)), 0);
    assert_int_equal (taken (&w), 0);
    unlink (path_of (A));
    offer (A, result_of (1, 1, 4), 0);
    assert_int_equal (taken (&w), 1);
    unmake (&w);
}

FOLDER_CASE (what_is_offered)
{
    double x = 0.5;
    struct event events[2] = {
        result_of (3, 1, 4),
        { .op = EVENT_BEGIN, .trial = 5, .length = 4, .x = &x, .nx = 1 },
    };
    struct worker w;
    char own[64];

    make (&w);
    w.rivals = false;
    snprintf (own, sizeof (own), "%s", peer_self (w.peer)->nonce);
    offer_put (&w, events);
    assert_true (w.rivals && w.offers);
    assert_int_equal (access (path_of (own), F_OK), 0);
    assert_int_equal (taken (&w), 0); /* it ignores its own */
    offer_put (&w, events);
    offer_withdraw (&w);
    assert_false (w.offers);
    assert_int_equal (access (path_of (own), F_OK), -1);
    /* if another user created the file first, the worker does not write to it */
    offer (own, events[0], 0);
    offer_put (&w, events);
    assert_false (w.offers);
    unlink (path_of (own));
    unmake (&w);
}

RUN_CASES ()
