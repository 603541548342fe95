/* SPDX-License-Identifier: Apache-2.0 */
/* Check how ranks report to their worker, and how it judges what is wrong. */
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "launcher/heal/heal.h"
#include "runtime/base/clock.h"
#include "runtime/comm/net/notice.h"
#include "tests/unit.h"

enum { N = 4 };

static const struct heal_limits begun = { .start = 300, .least = 15, .signs = 10 };
static const struct heal_limits starting = { .start = 300, .least = 15 };
static const struct heal_learned nothing = { 0 };

/* Two nodes with two ranks each; all last made progress at time 100. */
static void fill (struct heal_seen *r)
{
    for (int i = 0; i < N; i++)
        r[i] = (struct heal_seen){
            .came = true, .moved = 100, .state = 'S', .host = i < 2 ? "n1" : "n2"
        };
}

static struct heal_verdict judge (const struct heal_seen *r, const struct heal_limits *l,
                                  double now)
{
    struct heal_verdict v;

    heal_judge (r, N, l, &nothing, 100, now, &v);
    return v;
}

CASE (nothing_is_wrong)
{
    struct heal_seen r[N] = { 0 };

    assert_int_equal (judge (r, &begun, 1e6).cause, HEAL_NONE); /* no rank has connected */
    fill (r);
    assert_int_equal (judge (r, &begun, 114).cause, HEAL_NONE);
    r[3].moved = 114;
    assert_int_equal (judge (r, &begun, 128).cause, HEAL_NONE);
    for (int i = 0; i < N; i++)
        r[i].over = true; /* with status 0 */
    assert_int_equal (judge (r, &begun, 1e6).cause, HEAL_NONE);
}

CASE (the_first_rank_to_end_is_blamed)
{
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    r[0].over = r[1].over = r[3].over = true;
    r[0].status = r[1].status = 1 << 8;
    r[0].at = 103.2, r[1].at = 103.1;
    r[3].status = SIGKILL;
    r[3].at = 103;
    v = judge (r, &begun, 104);
    assert_int_equal (v.cause, HEAL_DIED);
    assert_int_equal (v.rank, 3);
    assert_int_equal (v.status, SIGKILL);
    assert_string_equal (v.host, "n2");
    assert_string_equal (v.why, "rank 3 on n2 was killed by signal 9 (Killed)");
    r[3].status = 137 << 8; /* how a shell reports the signal */
    assert_string_equal (judge (r, &begun, 104).why,
                         "rank 3 on n2 was killed by signal 9 (Killed)");
    r[1].at = 102;
    assert_string_equal (judge (r, &begun, 104).why, "rank 1 on n1 ended with exit status 1");
}

/* The others fail in their next collective, because one of them has left. */
CASE (a_rank_that_left_is_named)
{
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    r[0].over = r[1].over = r[3].over = true;
    r[1].at = 103;
    r[3].at = 103.5;
    r[0].status = 1 << 8;
    r[0].at = 104;
    v = judge (r, &begun, 104);
    assert_int_equal (v.rank, 0);
    assert_string_equal (
        v.why, "rank 0 on n1 ended with exit status 1, after rank 1 on n1 had ended with status 0");
    assert_string_equal (v.before, ", after rank 1 on n1 had ended with status 0");
    assert_int_equal (heal_first_to_fail (r, N), 0);
    r[0].at = 102;
    assert_string_equal (judge (r, &begun, 104).why, "rank 0 on n1 ended with exit status 1");
    r[0].status = 0;
    assert_int_equal (heal_first_to_fail (r, N), -1);
    v = judge (r, &begun, 130);
    assert_int_equal (v.cause, HEAL_HANG);
    assert_string_equal (
        v.why, "no rank has made progress for 26 s, after rank 0 on n1 had ended with status 0");
}

/* If ranks have roles, job_judge() decides what their exit means, so it is no failure here.  A rank
 * that vanished is still one.
 */
CASE (ranks_with_a_role_may_end)
{
    const struct heal_limits roles = { .start = 300, .least = 15, .signs = 10, .may_end = true };
    struct heal_seen r[N];

    fill (r);
    r[3].over = true;
    r[3].status = 1 << 8;
    r[3].at = 103;
    assert_int_equal (judge (r, &begun, 104).cause, HEAL_DIED);
    assert_int_equal (judge (r, &roles, 104).cause, HEAL_NONE);
    assert_int_equal (judge (r, &roles, 118).cause, HEAL_HANG);
    r[2].cut = true;
    r[2].at = 104;
    assert_int_equal (judge (r, &roles, 105).cause, HEAL_CUT);
}

CASE (a_node_is_lost)
{
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    r[2].lost = r[3].lost = true;
    r[2].at = r[3].at = 110;
    v = judge (r, &starting, 110.1);
    assert_int_equal (v.cause, HEAL_LOST);
    assert_string_equal (v.host, "n2");
    assert_string_equal (v.why, "node n2 does not answer; 2 ranks there");
    assert_true (heal_rows[v.cause].leaves && heal_rows[v.cause].is_free);
    r[2].lost = false;
    r[2].cut = true;
    r[2].at = 109;
    v = judge (r, &starting, 110.1);
    assert_int_equal (v.cause, HEAL_CUT);
    assert_int_equal (v.rank, 2);
}

/* A host that reaches nobody blames itself, unless it has heard of another host since. */
CASE (a_worker_that_is_alone_blames_its_own_host)
{
    const struct heal_limits at_home = { .start = 300, .least = 15, .home = "n1" };
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    for (int i = 0; i < N; i++)
        r[i].heard = 100;
    r[1].host = "n3";
    r[2].lost = true;
    r[2].at = 111;
    v = judge (r, &at_home, 111);
    assert_int_equal (v.cause, HEAL_ALONE);
    assert_int_equal (v.others, 2);
    assert_string_equal (v.host, "");
    assert_string_equal (v.why, "n1 reaches no other node: its own network is the likely cause");
    assert_true (heal_rows[v.cause].leaves && heal_rows[v.cause].is_free);
    heal_blame_lost (r, N, &v);
    assert_int_equal (v.cause, HEAL_LOST);
    assert_string_equal (v.why, "node n2 does not answer; 2 ranks there");
    r[1].heard = 110;
    assert_int_equal (judge (r, &at_home, 111).cause, HEAL_LOST);
    r[1].heard = 100;
    r[1].over = true; /* only n2 is left */
    assert_int_equal (judge (r, &at_home, 111).others, 1);
}

CASE (ranks_are_missing)
{
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    r[0].cut = true;
    r[0].at = 103;
    r[2] = r[3] = (struct heal_seen){ .came = false };
    v = judge (r, &starting, 104);
    assert_int_equal (v.cause, HEAL_CUT);
    assert_int_equal (v.rank, -1);
    assert_string_equal (v.why, "Slurm ended the step before all ranks had started");
    r[1].over = true;
    r[1].status = 1 << 8; /* it failed on its own */
    r[1].at = 102;
    assert_string_equal (judge (r, &begun, 104).why, "rank 1 on n1 ended with exit status 1");
}

CASE (a_stopped_rank_is_named)
{
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    r[1].state = 'T';
    r[0].moved = 105; /* rank 0 makes progress, so it does not wait for rank 1 */
    assert_int_equal (judge (r, &begun, 114.9).cause, HEAL_NONE);
    v = judge (r, &begun, 115);
    assert_int_equal (v.cause, HEAL_STOPPED);
    assert_int_equal (v.rank, 1);
    assert_string_equal (
        v.why, "rank 1 on n1 is stopped (SIGSTOP), and no rank has made progress for 10 s");
    assert_int_equal (judge (r, &starting, 115).cause, HEAL_NONE);
    for (int i = 0; i < N; i++)
        r[i].heard = 110.1;
    assert_int_equal (judge (r, &begun, 115).cause, HEAL_STOPPED);
    assert_int_equal (judge (r, &begun, 115.2).cause, HEAL_NONE); /* that heartbeat is too old */
}

/* A frozen host acknowledges packets, but sends no heartbeats. */
CASE (a_silent_rank_is_named)
{
    const struct heal_limits never = { .fixed = true, .signs = 10 };
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    for (int i = 0; i < N; i++)
        r[i].heard = 117;
    r[2].heard = 101;
    r[3].heard = 100;
    r[3].state = 'R'; /* its last heartbeat is no excuse any more */
    r[3].sleeps = 100;
    assert_int_equal (judge (r, &starting, 114.9).cause, HEAL_NONE);
    v = judge (r, &starting, 117);
    assert_int_equal (v.cause, HEAL_SILENT);
    assert_int_equal (v.rank, 3);
    assert_string_equal (v.host, "n2");
    assert_string_equal (v.why,
                         "rank 3 on n2 sends no heartbeat for 17 s, and no rank makes progress");
    assert_int_equal (judge (r, &never, 117).cause, HEAL_NONE);
    r[0].moved = 117; /* the others do not wait for it: perhaps only dl rank is stopped */
    assert_int_equal (judge (r, &begun, 131.9).cause, HEAL_NONE);
    r[0].moved = 100;
    r[3].state = 'D'; /* storage may hold up dl rank, too */
    r[2].heard = 117;
    assert_int_equal (judge (r, &starting, 117).cause, HEAL_NONE);
    assert_int_equal (judge (r, &starting, 130).cause, HEAL_NONE);
}

/* While the job is suspended, no rank sends anything. */
CASE (silence_of_all_is_no_rank_s_fault)
{
    struct heal_seen r[N];

    fill (r);
    for (int i = 0; i < N; i++)
        r[i].heard = 100 + i / 10.;
    assert_int_equal (judge (r, &begun, 145).cause, HEAL_NONE);
    assert_int_equal (judge (r, &begun, 399).cause, HEAL_NONE);
    assert_int_equal (judge (r, &begun, 400).cause, HEAL_HANG);
}

CASE (all_ranks_are_silent)
{
    const struct heal_limits never = { .fixed = true, .signs = 10 };
    const struct heal_limits fixed = { .least = 5, .fixed = true };
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    v = judge (r, &begun, 115);
    assert_int_equal (v.cause, HEAL_HANG);
    assert_int_equal (v.rank, -1);
    assert_string_equal (v.why, "no rank has made progress for 15 s");
    assert_int_equal (judge (r, &starting, 399).cause, HEAL_NONE);
    assert_int_equal (judge (r, &starting, 400).cause, HEAL_HANG);
    assert_int_equal (judge (r, &never, 1e9).cause, HEAL_NONE);
    assert_int_equal (judge (r, &fixed, 104).cause, HEAL_NONE);
    assert_int_equal (judge (r, &fixed, 105).cause, HEAL_HANG);
    /* give the others time to notice that a rank exited with 0 */
    r[0].over = true;
    r[0].at = 110;
    assert_int_equal (judge (r, &begun, 124).cause, HEAL_NONE);
    assert_int_equal (judge (r, &begun, 125).cause, HEAL_HANG);
}

CASE (computing_ranks_have_longer)
{
    static const struct {
        double cores;
        char state;
    } busy[] = { { 0.9, 'S' }, { 0.1, 'R' } };
    struct heal_seen r[N];

    for (size_t i = 0; i < sizeof (busy) / sizeof (*busy); i++) {
        fill (r);
        r[2].cores = busy[i].cores;
        r[2].state = busy[i].state;
        assert_int_equal (judge (r, &begun, 159).cause, HEAL_NONE);
        assert_int_equal (judge (r, &begun, 160).cause, HEAL_HANG);
    }
}

/* The limit is longer for a run that has printed little so far, waits for a disk or sleeps. */
CASE (the_limit_is_longer_for_living_runs)
{
    const struct heal_limits few = { .start = 300, .least = 15, .signs = 2 };
    struct heal_seen r[N];

    fill (r);
    assert_int_equal (judge (r, &few, 159).cause, HEAL_NONE);
    assert_int_equal (judge (r, &few, 160).cause, HEAL_HANG);
    r[2].state = 'D';
    assert_int_equal (judge (r, &begun, 399).cause, HEAL_NONE);
    assert_int_equal (judge (r, &begun, 400).cause, HEAL_HANG);
    r[2].state = 'S';
    r[2].sleeps = 0.5;
    assert_int_equal (judge (r, &begun, 399).cause, HEAL_NONE);
    assert_int_equal (judge (r, &begun, 400).cause, HEAL_HANG);
    r[2].sleeps = 1e6; /* forever */
    assert_int_equal (judge (r, &begun, 115).cause, HEAL_HANG);
}

CASE (the_run_teaches_its_gaps)
{
    struct heal_learned l = { 0 };
    struct heal_seen r[N];
    struct heal_verdict v;

    fill (r);
    for (double t = 0; t < 8; t += 0.5)
        heal_learn (&l, t);
    assert_true (l.longest == 0); /* the gap has not ended */
    heal_learn (&l, 0);
    heal_learn (&l, 3);
    heal_learn (&l, 0);
    assert_true (l.longest == 7.5);
    heal_judge (r, N, &begun, &l, 0, 137, &v);
    assert_int_equal (v.cause, HEAL_NONE);
    heal_judge (r, N, &begun, &l, 0, 137.5, &v);
    assert_int_equal (v.cause, HEAL_HANG);
}

/* The table in dl-trainer(7), HEALING, has a row for each cause, in the order of the enum. */
CASE (the_manual_has_the_table)
{
    char path[4096], line[512], cause[32], stacks[32], step[32], node[32], attempt[32];
    const char *srcdir = getenv ("srcdir");
    int n = 0;
    FILE *f;

    snprintf (path, sizeof (path), "%s/doc/dl-trainer.7", srcdir ? srcdir : ".");
    assert_non_null (f = fopen (path, "r"));
    while (fgets (line, sizeof (line), f))
        if (sscanf (line, "%*[^\t]\t%31[^\t]\t%31[^\t]\t%31[^\t]\t%31[^\t]\t%31[^\t\n]", cause,
                    stacks, step, node, attempt)
                == 5
            && strcmp (cause, "cause") && ++n < HEAL_CAUSES) {
            const struct heal_row *row = &heal_rows[n];
            assert_string_equal (cause, condition_reason_word (row->reason));
            assert_string_equal (stacks, row->takes_stacks ? "kept" : "no");
            assert_string_equal (step, row->leaves ? "abandoned" : "ended");
            assert_string_equal (node, n == HEAL_LOST ? "left out"
                                       : row->checks  ? "checked"
                                                      : "kept");
            assert_string_equal (attempt, row->is_free ? "free" : "counted");
        }
    fclose (f);
    assert_int_equal (n, HEAL_CAUSES - 1);
}

/* ---- a rank and its worker ---- */

enum { SECONDS = 60 };

static pid_t start_rank (const char *notice, const char *rank, bool ends)
{
    struct heal_rank *r;
    pid_t pid = fork ();

    assert_true (pid >= 0);
    if (pid > 0)
        return pid;
    for (int fd = 3; fd < 256; fd++) /* as exec would, above all the worker's listener */
        close (fd);
    setenv ("DL_RANKS", notice, 1);
    setenv ("SLURM_PROCID", rank, 1);
    setenv ("SLURM_JOB_ID", "1", 1);
    setenv ("SLURM_STEP_ID", "7", 1);
    setenv ("SLURMD_NODENAME", "n5", 1);
    if (!(r = heal_rank_create ()) || getenv ("DL_RANKS"))
        _exit (1);
    while (!ends && heal_rank_fd (r) < 0)
        heal_rank_serve (r);
    if (ends) { /* before the rank has connected */
        heal_rank_over (r, SIGKILL);
        _exit (0);
    }
    while (heal_rank_serve (r))
        usleep (10000);
    _exit (3); /* the worker asked it to end */
}

static bool came (const struct heal_seen *r)
{
    return r->came;
}
static bool over (const struct heal_seen *r)
{
    return r->over;
}
static bool cut (const struct heal_seen *r)
{
    return r->cut;
}

static const struct heal_seen *await (struct rank_watch *w, size_t rank,
                                      bool (*is) (const struct heal_seen *))
{
    double until = monotonic () + SECONDS;
    const struct heal_seen *seen;
    size_t n;

    do {
        rank_watch_serve (w);
        seen = &rank_watch_seen (w, &n)[rank];
        usleep (10000);
    } while (!is (seen) && monotonic () < until);
    assert_true (is (seen));
    return seen;
}

static int status_of (struct rank_watch *w, pid_t pid)
{
    int status = -1;

    while (waitpid (pid, &status, WNOHANG) == 0) {
        rank_watch_serve (w);
        usleep (10000);
    }
    return status;
}

CASE (a_worker_gets_it_and_ends_its_ranks)
{
    struct rank_watch *w;
    const struct heal_seen *seen;
    char text[NOTICE_TEXT];
    pid_t ending, living, killed;

    assert_non_null (w = rank_watch_create ("test.ranks", 3, NULL));
    assert_int_equal (rank_watch_step (w), -1);
    ending = start_rank ("test.ranks", "0", true);
    living = start_rank ("test.ranks", "1", false);
    killed = start_rank ("test.ranks", "2", false);
    seen = await (w, 0, over);
    assert_int_equal (seen->status, SIGKILL);
    assert_string_equal (seen->host, "n5");
    assert_int_equal (rank_watch_step (w), 7);
    assert_int_equal (status_of (w, ending), 0);
    await (w, 1, came);
    await (w, 2, came);
    kill (killed, SIGKILL);
    await (w, 2, cut);
    waitpid (killed, NULL, 0);
    rank_watch_end (w);
    assert_int_equal (status_of (w, living), 3 << 8);
    rank_watch_destroy (w);
    assert_int_equal (notice_get ("test.ranks", text, NULL), -1);
}

/* If the worker is killed, the next one begins another attempt on the same GPUs. */
CASE (a_rank_ends_with_its_worker)
{
    struct rank_watch *w = rank_watch_create ("test.ranks", 1, NULL);
    double until;
    int status;
    pid_t pid;

    assert_non_null (w);
    pid = start_rank ("test.ranks", "0", false);
    await (w, 0, came);
    rank_watch_destroy (w);
    until = monotonic () + SECONDS / 2.0;
    while (waitpid (pid, &status, WNOHANG) == 0) {
        assert_true (monotonic () < until);
        usleep (10000);
    }
    assert_int_equal (status, 3 << 8);
}

/* A listener on 127.0.0.2 that drops what arrives, because its queue is full. */
static void listen_silently (int port, int fds[3])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons ((uint16_t)port) };

    at.sin_addr.s_addr = htonl (INADDR_LOOPBACK + 1);
    for (int i = 0; i < 3; i++) {
        fds[i] = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true (fds[i] >= 0);
        if (i == 0) {
            assert_int_equal (bind (fds[0], (struct sockaddr *)&at, sizeof (at)), 0);
            assert_int_equal (listen (fds[0], 0), 0);
        } else
            connect (fds[i], (struct sockaddr *)&at, sizeof (at));
    }
}

/* The worker's host may have an address that leads to this host, such as that of a bridge. */
CASE (another_host_that_refuses_proves_nothing)
{
    struct rank_watch *w = rank_watch_create ("test.ranks", 1, NULL);
    char text[NOTICE_TEXT], key[64], more[NOTICE_TEXT];
    struct heal_rank *r;
    int port, fds[3];

    assert_non_null (w);
    assert_int_equal (notice_get ("test.ranks", text, NULL), 0);
    assert_int_equal (sscanf (text, "%d %63s", &port, key), 2);
    rank_watch_destroy (w);
    listen_silently (port, fds);
    for (int lost = 0; lost < 2; lost++) {
        snprintf (more, sizeof (more), "%d %s %s127.0.0.1", port, key, lost ? "127.0.0.2," : "");
        assert_int_equal (notice_put ("test.ranks", more, NULL), 0);
        setenv ("DL_RANKS", "test.ranks", 1);
        assert_non_null (r = heal_rank_create ());
        assert_int_equal (heal_rank_is_abandoned (r), lost);
        heal_rank_destroy (r);
    }
    for (int i = 0; i < 3; i++)
        close (fds[i]);
    notice_remove ("test.ranks");
}

/* A worker that was killed has left a notice with its key. */
CASE (old_notices_are_removed)
{
    char text[NOTICE_TEXT];
    struct rank_watch *w;

    assert_int_equal (notice_put ("ranks.a.1", "old", NULL), 0);
    assert_int_equal (notice_put ("ranks.b.1", "another trial's", NULL), 0);
    assert_non_null (w = rank_watch_create ("ranks.a.2", 1, NULL));
    assert_int_equal (notice_get ("ranks.a.1", text, NULL), -1);
    assert_int_equal (notice_get ("ranks.a.2", text, NULL), 0);
    assert_int_equal (notice_get ("ranks.b.1", text, NULL), 0);
    notice_remove ("ranks.b.1");
    rank_watch_destroy (w);
}

/* A rank that connects, and ends only when 'go' is closed: it says so and resets its connection. */
static pid_t start_resetting (int go)
{
    struct linger at_once = { .l_onoff = 1 };
    struct heal_rank *r;
    pid_t pid = fork ();
    char byte;

    assert_true (pid >= 0);
    if (pid > 0)
        return pid;
    setenv ("DL_RANKS", "test.ranks", 1);
    setenv ("SLURM_PROCID", "0", 1);
    if (!(r = heal_rank_create ()))
        _exit (1);
    while (heal_rank_fd (r) < 0)
        heal_rank_serve (r);
    if (read (go, &byte, 1) != 1)
        _exit (2);
    setsockopt (heal_rank_fd (r), SOL_SOCKET, SO_LINGER, &at_once, sizeof (at_once));
    heal_rank_over (r, 3 << 8);
    heal_rank_destroy (r);
    _exit (0);
}

/* A rank that ends closes its connection with the worker's pings unread, which resets it.  The
 * worker has what it said before, whether it reads or sends next.
 */
CASE (a_finished_rank_was_not_cut_off)
{
    for (int sends = 0; sends < 2; sends++) {
        struct rank_watch *w = rank_watch_create ("test.ranks", 1, NULL);
        const struct heal_seen *seen;
        int go[2];
        pid_t pid;
        size_t n;

        assert_non_null (w);
        assert_int_equal (pipe (go), 0);
        pid = start_resetting (go[0]);
        await (w, 0, came);
        assert_int_equal (write (go[1], "x", 1), 1);
        assert_int_equal (waitpid (pid, NULL, 0), pid);
        if (sends)
            rank_watch_dump (w, "/nowhere", 1);
        else
            rank_watch_serve (w);
        seen = rank_watch_seen (w, &n);
        assert_true (seen->over);
        assert_false (seen->cut);
        assert_int_equal (seen->status, 3 << 8);
        close (go[0]);
        close (go[1]);
        rank_watch_destroy (w);
    }
}

/* The worker ignores peers that do not have the key in the notice. */
CASE (a_process_without_the_key_is_not_a_rank)
{
    struct rank_watch *w;
    char text[NOTICE_TEXT], *key;
    double until;
    size_t n;
    pid_t pid;

    assert_non_null (w = rank_watch_create ("test.ranks", 1, NULL));
    assert_int_equal (notice_get ("test.ranks", text, NULL), 0);
    assert_non_null (key = strchr (text, ' '));
    key[1] = key[1] == '0' ? '1' : '0';
    assert_int_equal (notice_put ("test.wrong", text, NULL), 0);
    pid = start_rank ("test.wrong", "0", false);
    until = monotonic () + 2;
    while (monotonic () < until) {
        rank_watch_serve (w);
        usleep (10000);
    }
    assert_false (rank_watch_seen (w, &n)->came);
    kill (pid, SIGKILL);
    waitpid (pid, NULL, 0);
    notice_remove ("test.wrong");
    rank_watch_destroy (w);
}

static int make_home (void **state)
{
    static char home[] = "/tmp/dl-heal.XXXXXX";

    return mkdtemp (home) && setenv ("HOME", home, 1) == 0 ? 0 : -1;
}

static int remove_home (void **state)
{
    char path[128];

    snprintf (path, sizeof (path), "%s/.slurm-dl", getenv ("HOME"));
    rmdir (path);
    return rmdir (getenv ("HOME"));
}

int main (void)
{
    return run_cases (make_home, remove_home);
}
