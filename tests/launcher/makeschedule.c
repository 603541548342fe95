/* SPDX-License-Identifier: Apache-2.0 */
/* makeschedule <FILE: create the experiment that workers and training scripts would leave if they
 * followed the schedule in FILE.
 *
 * A line of the schedule is SECONDS COMMAND [ARGUMENT...]; # starts a comment:
 *     create CONF                         create the experiment in the current directory
 *     worker NAME SLOT                    start a worker
 *     beat NAME, gone NAME                send a heartbeat of the worker, or end it
 *     requeues N                          Slurm has requeued the jobs of later workers N times
 *     claim NAME TRIAL ATTEMPT            let the worker claim an attempt
 *     event JSON                          append to the decision log; @NAME is a worker's nonce
 *     log TRIAL ATTEMPT METRIC STEP       add a row to the metrics of an attempt
 *     did TRIAL ATTEMPT KIND JSON         add an event to an attempt
 *     flow NAME                           create the directory of a flow
 *     told JSON                           append to the decision log of the flow
 *     made STEP ATTEMPT METRIC STEP       add a row to an attempt at task 0 of a step of the flow
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "runtime/slurmdl.h"
#include "tests/launcher/made.h"

/* The realtime clocks return the time in the schedule. */
static struct timespec now;

int clock_gettime (clockid_t which, struct timespec *t)
{
    if (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)
        return (int)syscall (SYS_clock_gettime, which, t);
    *t = now;
    return 0;
}

enum { WORKERS_MAX = 16, EPOCH = 1700000000 };

static struct {
    char name[32];
    struct peer_membership *peer;
} workers[WORKERS_MAX];

static struct sweep *sweep;
static struct log *flow;
static char flow_dir[128];
static struct slurmdl *run; /* of the attempt that logs now */
static char run_dir[256];
static long line_number;

static void die (const char *why)
{
    fprintf (stderr, "makeschedule: line %ld: %s\n", line_number, why);
    exit (1);
}

static int find_worker (const char *name)
{
    for (int i = 0; i < WORKERS_MAX; i++)
        if (!strcmp (workers[i].name, name))
            return i;
    die ("no such worker");
    return -1;
}

static void create (const char *conf)
{
    char folder[256];

    if (made_folder (conf, ".", folder, sizeof (folder)) < 0 || !(sweep = made_open (folder)))
        die ("create");
    puts (folder);
}

/* Replaces each @NAME in the text with the nonce of that worker. */
static void put_event (const char *text)
{
    char json[4096];
    size_t n = 0;
    struct slurmdl_error err = { "" };
    struct event e;
    json_t *o;

    while (*text && n < sizeof (json) - 40)
        if (*text == '@') {
            char name[32] = "";
            size_t length = strcspn (++text, "\" ");
            snprintf (name, sizeof (name), "%.*s", (int)length, text);
            n += (size_t)snprintf (json + n, 40, "%s",
                                   peer_self (workers[find_worker (name)].peer)->nonce);
            text += length;
        } else
            json[n++] = *text++;
    json[n] = '\0';
    if (!(o = json_loads (json, 0, NULL)) || event_read (o, &e) < 0)
        die ("this is no event");
    if (sweep_publish (sweep, &e, 1, &err) != PUBLISH_DONE)
        die (*err.text ? err.text : "late");
    event_free (&e);
    json_decref (o);
}

static void make_flow (const char *name)
{
    char path[256];
    FILE *f;

    snprintf (flow_dir, sizeof (flow_dir), "%s", name);
    mkdir (flow_dir, 0777);
    snprintf (path, sizeof (path), "%s/flow.json", flow_dir);
    if (!(f = fopen (path, "w")) || fclose (f))
        die ("flow.json");
    snprintf (path, sizeof (path), "%s/log", flow_dir);
    if (!(flow = log_create (path, NULL)))
        die ("the log of a flow");
}

static void put_flow_event (const char *text)
{
    json_t *o = json_loads (text, 0, NULL);
    struct event e, timed;

    if (!o || event_read (o, &e) < 0)
        die ("this is no event");
    timed = event_now (e);
    if (log_append (flow, &timed, 1, NULL) != PUBLISH_DONE)
        die ("the log of a flow");
    event_free (&e);
    json_decref (o);
}

static const char *step_attempt (const char *step, long attempt)
{
    static char path[256];
    int at = snprintf (path, sizeof (path), "%s/steps", flow_dir);

    mkdir (path, 0777);
    at += snprintf (path + at, sizeof (path) - (size_t)at, "/%s", step);
    mkdir (path, 0777);
    at += snprintf (path + at, sizeof (path) - (size_t)at, "/0");
    mkdir (path, 0777);
    snprintf (path + at, sizeof (path) - (size_t)at, "/a.%ld", attempt);
    return mkdir (path, 0777) == 0 || errno == EEXIST ? path : NULL;
}

static void use_attempt (const char *dir)
{
    char path[PATH_MAX];

    if (!dir || !strcmp (dir, run_dir))
        return;
    if (run && slurmdl_close (run) < 0)
        die ("cannot close the attempt before");
    snprintf (run_dir, sizeof (run_dir), "%s", dir);
    if (!realpath (dir, path))
        die ("no folder");
    setenv ("DL_ATTEMPT_DIR", path, 1);
    if (!(run = slurmdl_open (NULL, NULL)))
        die ("cannot open the attempt");
}

static void obey (const char *command, char *rest)
{
    char name[64] = "", kind[64] = "";
    long long trial = 0, attempt = 0, step = 0;
    int at = 0;

    if (!strcmp (command, "create"))
        create (rest);
    else if (!strcmp (command, "requeues"))
        setenv ("SLURM_RESTART_COUNT", rest, 1);
    else if (!strcmp (command, "event"))
        put_event (rest);
    else if (!strcmp (command, "flow"))
        make_flow (rest);
    else if (!strcmp (command, "told"))
        put_flow_event (rest);
    else if (!strcmp (command, "made")
             && sscanf (rest, "%63s %lld %63s %lld", name, &attempt, kind, &step) == 4) {
        use_attempt (step_attempt (name, (long)attempt));
        if (slurmdl_log (run, kind, step, 1) < 0)
            die ("made");
    } else if (!strcmp (command, "worker") && sscanf (rest, "%31s %63s", name, kind) == 2) {
        int i = find_worker ("");
        snprintf (workers[i].name, sizeof (workers[i].name), "%s", name);
        if (!(workers[i].peer = peer_create (sweep->dir, kind, NULL)))
            die ("worker");
    } else if (!strcmp (command, "beat")) {
        if (peer_beat (workers[find_worker (rest)].peer, NULL) < 0)
            die ("beat");
    } else if (!strcmp (command, "gone")) {
        peer_destroy (workers[find_worker (rest)].peer);
        workers[find_worker (rest)].peer = NULL;
    } else if (sscanf (rest, "%63s %lld %lld", name, &trial, &attempt) == 3
               && !strcmp (command, "claim")) {
        if (peer_claim (workers[find_worker (name)].peer, (long)trial, (long)attempt, 1, NULL)
            != CLAIM_OURS)
            die ("claim");
    } else if (!strcmp (command, "log")
               && sscanf (rest, "%lld %lld %63s %lld", &trial, &attempt, kind, &step) == 4) {
        use_attempt (made_attempt (sweep, (long)trial, (long)attempt));
        if (slurmdl_log (run, kind, step, 1) < 0)
            die ("log");
    } else if (!strcmp (command, "did")
               && sscanf (rest, "%lld %lld %63s %n", &trial, &attempt, kind, &at) == 3) {
        use_attempt (made_attempt (sweep, (long)trial, (long)attempt));
        if (slurmdl_event (run, kind, rest + at) < 0)
            die ("did");
    } else
        die ("what is that?");
}

int main (void)
{
    char text[4096];

    while (fgets (text, sizeof (text), stdin)) {
        char command[32] = "";
        double seconds = 0;
        int at = 0;

        line_number++;
        text[strcspn (text, "#\n")] = '\0';
        if (sscanf (text, "%lf %31s %n", &seconds, command, &at) < 2)
            continue;
        for (size_t n = strlen (text); n > 0 && text[n - 1] == ' ';)
            text[--n] = '\0';
        now =
            (struct timespec){ .tv_sec = EPOCH + (time_t)seconds,
                               .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9 + 0.5) };
        obey (command, text + at);
    }
    if (run && slurmdl_close (run) < 0)
        die ("close");
    log_destroy (flow);
    sweep_close (sweep);
    return 0;
}
