/* SPDX-License-Identifier: Apache-2.0 */
/* The part of one rank: facts, checks, and the answer of the collector. */
#include "launcher/node/rank_check.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "launcher/node/check_report.h"
#include "launcher/node/checks.h"
#include "launcher/node/json_message.h"
#include "launcher/node/listen.h"
#include "launcher/sys/say.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/comm/net/socket.h"
#include "runtime/host/topology.h"
#include "runtime/network/fabric.h"
#include "runtime/rank/layout.h"

/* clang-format off */
static const struct check_row check_table[] = {
    { "GPUs",              LEVEL_NONE,  EVERY_RANK,    SEVERITY_BAD,    check_gpus },
    { "GPU copy",          LEVEL_FULL,  EVERY_RANK,    SEVERITY_BAD,    check_copy },
    { "AMD GPUs",          LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_amd },
    { "kernel log",        LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_NOTE,   check_kernel },
    { "network",           LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_network },
    { "memory",            LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_memory },
    { "memory bandwidth",  LEVEL_FULL,  FIRST_OF_NODE, SEVERITY_BAD,    check_bandwidth },
    { "working directory", LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_SHARED, check_directory },
    { "TMPDIR",            LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_BAD,    check_temporary },
    { "versions",          LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_WARN,   check_versions },
    { "Python",            LEVEL_FULL,  FIRST_OF_NODE, SEVERITY_WARN,   check_python },
    { 0 },
};

static const struct check_row check_peer_table[] = {
    { "MASTER_PORT",       LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_STOP,   check_master },
    { "next node",         LEVEL_QUICK, FIRST_OF_NODE, SEVERITY_WARN,   check_next },
    { 0 },
};
/* clang-format on */

enum { CONNECT_S = 3, TRIES = 3 };

struct rank_check {
    const struct gather_client *c;
    long rank, size, local_rank, local_size;
    double deadline;
    struct net_stream stream; /* of the collector; fd -1: none */
    pid_t server;
    json_t *facts, *findings;
    char host[NAME_TEXT];
};

/* ---- facts ---- */

static void read_place (struct rank_check *r)
{
    const char *node = getenv ("SLURMD_NODENAME");
    const char *gtids = getenv ("SLURM_GTIDS");

    r->rank = environment_number ("SLURM_PROCID", 0);
    r->size = environment_number ("SLURM_STEP_NUM_TASKS", 1);
    r->local_rank = environment_number ("SLURM_LOCALID", 0);
    r->local_size = gtids ? layout_count (gtids) : 1;
    if (r->local_size < 1)
        r->local_size = 1;
    if (node)
        gather_clean (r->host, sizeof (r->host), node);
    else
        gethostname (r->host, sizeof (r->host) - 1);
}

static void put_text (json_t *to, const char *name, const char *value)
{
    if (value)
        json_object_set_new (to, name, json_string (value));
}

static json_t *layout_facts (void)
{
    json_t *at = json_object ();

    put_text (at, "hosts", getenv ("SLURM_STEP_NODELIST"));
    put_text (at, "tasks", getenv ("SLURM_STEP_TASKS_PER_NODE"));
    put_text (at, "distribution", getenv ("SLURM_DISTRIBUTION"));
    put_text (at, "gtids", getenv ("SLURM_GTIDS"));
    json_object_set_new (at, "plane",
                         json_integer (environment_number ("SLURM_DIST_PLANESIZE", 0)));
    json_object_set_new (at, "node", json_integer (environment_number ("SLURM_NODEID", 0)));
    return at;
}

static void put_cores (json_t *facts)
{
    struct cpu_set set = { { 0 } };
    char list[256];

    if (sched_getaffinity (0, sizeof (set), (cpu_set_t *)&set) == 0)
        put_text (facts, "cores", cpus_print (&set, list, sizeof (list)));
}

static void put_address (json_t *facts, const char *interface)
{
    struct ifaddrs *list = NULL;
    char text[64];

    if (getifaddrs (&list) < 0)
        return;
    for (struct ifaddrs *i = list; i; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !strcmp (i->ifa_name, interface)
            && getnameinfo (i->ifa_addr, sizeof (struct sockaddr_in), text, sizeof (text), NULL, 0,
                            NI_NUMERICHOST)
                   == 0)
            put_text (facts, "address", text);
    freeifaddrs (list);
}

/* What the rank will use: what --dl-bind=nic chose, else the fabric. */
static void put_network (json_t *facts)
{
    struct fabric *f = calloc (1, sizeof (*f));
    const char *nic = getenv ("UCX_NET_DEVICES");
    const struct fabric_interface *i;
    char text[2 * FABRIC_NAME];

    if (!f)
        return;
    fabric_read ("/sys", f);
    i = fabric_nccl_choice (f);
    put_address (facts, i ? i->name : "lo");
    snprintf (text, sizeof (text), "%s", i ? i->name : "lo");
    for (int k = 0; k < f->nports; k++)
        if (f->ports[k].kind == f->kind && !f->ports[k].unused) {
            snprintf (text, sizeof (text), "%s %s", fabric_names[f->kind], f->ports[k].name);
            break;
        }
    put_text (facts, "nic", nic ? nic : text);
    free (f);
}

static void put_time (json_t *facts)
{
    struct timespec now;

    clock_gettime (CLOCK_REALTIME, &now);
    json_object_set_new (facts, "time", json_real ((double)now.tv_sec + (double)now.tv_nsec / 1e9));
}

/* The program will have the number of the process that waits for this one. */
static void find_facts (struct rank_check *r, int peer_port)
{
    r->facts = json_pack ("{s:i, s:i, s:s, s:i, s:i}", "rank", (int)r->rank, "local_rank",
                          (int)r->local_rank, "host", r->host, "pid", (int)getppid (), "peer_port",
                          peer_port);
    if (!r->facts)
        r->facts = json_object ();
    put_cores (r->facts);
    put_network (r->facts);
}

/* ---- the collector ---- */

static int connect_to (const struct gather_client *c)
{
    double deadline = monotonic () + CONNECT_S;
    int port = atoi (c->port);
    int fd;

    do
        fd = socket_connect (c->address, port, deadline);
    while (fd < 0 && errno == ECONNREFUSED && c->waits && monotonic () + 0.1 < deadline
           && usleep (100000) == 0);
    return fd;
}

static void lose (struct rank_check *r, const char *what)
{
    if (r->stream.fd >= 0)
        close (r->stream.fd);
    r->stream.fd = -1;
    if (r->local_rank == 0)
        complain ("check: rank %ld on %s %s %s port %s: %s; it checks only its "
                  "own node",
                  r->rank, r->host, what, r->c->address, r->c->port, strerror (errno));
}

static void send_line (struct rank_check *r, json_t *line)
{
    if (r->stream.fd >= 0 && gather_send (&r->stream, line, r->deadline) < 0)
        lose (r, "cannot send to the collector at");
    json_decref (line);
}

static int introduce (struct rank_check *r)
{
    struct handshake with = gather_handshake (r->c->key);
    json_t *self = json_pack ("{s:i, s:i, s:o*}", "rank", (int)r->rank, "size", (int)r->size,
                              "layout", r->local_rank ? NULL : layout_facts ());
    char *text = json_dumps (self, JSON_COMPACT);
    int rv = -1;

    if (text)
        rv = handshake_call (r->stream.fd, &with, text, strlen (text), monotonic () + CONNECT_S,
                             &r->stream.seal);
    else
        errno = ENOMEM;
    free (text);
    json_decref (self);
    return rv;
}

static void handshake (struct rank_check *r)
{
    int rv = -1;

    if (!r->c->address)
        return;
    /* it may have been pushed out by others that come */
    for (int i = 0; rv < 0 && i < TRIES; i++) {
        if (r->stream.fd >= 0)
            close (r->stream.fd);
        if ((r->stream.fd = connect_to (r->c)) < 0)
            break;
        rv = introduce (r);
    }
    if (r->stream.fd < 0)
        lose (r, "cannot reach the collector at");
    else if (rv < 0)
        lose (r, "cannot send to the collector at");
}

static json_t *receive (struct rank_check *r)
{
    struct pollfd p = { .fd = r->stream.fd, .events = POLLIN };
    json_t *line = NULL;

    while (r->stream.fd >= 0 && !(line = gather_receive (&r->stream))) {
        double left = r->deadline - monotonic ();
        if (errno == EAGAIN && left > 0) {
            poll (&p, 1, (int)(left * 1000) + 1);
            continue;
        }
        if (errno == EAGAIN)
            errno = ETIMEDOUT;
        lose (r, "gets no answer from the collector at");
    }
    return line;
}

/* ---- the answer ---- */

static void meet_others (struct rank_check *r, const json_t *go)
{
    struct check_place place = {
        .level = r->c->level,
        .local_rank = r->local_rank,
        .local_size = r->local_size,
        .key = r->c->key,
        .next = json_object_get (go, "next"),
    };
    json_t *facts = json_object ();
    json_t *findings = json_array ();

    health_run (check_peer_table, &place, gather_times[r->c->level].peers - 0.5, facts, findings);
    send_line (r, json_pack ("{s:o, s:O?}", "findings", findings, "rates",
                             json_object_get (facts, "rates")));
    json_decref (facts);
}

static json_t *whole (const struct rank_check *r)
{
    return json_pack ("{s:O, s:O}", "facts", r->facts, "findings", r->findings);
}

/* By what this rank has found alone. */
static int judge_alone (const struct rank_check *r)
{
    json_t *one = whole (r);
    struct diagnosis *d = diagnosis_create (&one, 1, NULL);
    char text[WHY_TEXT + NAME_TEXT];
    int status = GATHER_GO;

    for (long i = 0; d && i < d->nfindings && !r->c->quiet; i++) {
        finding_text (d, &d->findings[i], text, sizeof (text));
        if (d->findings[i].severity >= SEVERITY_WARN)
            complain ("check: %s: %s", severity_names[d->findings[i].severity], text);
    }
    if (d && r->c->level > LEVEL_NONE)
        status = diagnosis_status (d, 0);
    diagnosis_destroy (d);
    json_decref (one);
    return status;
}

static int await (struct rank_check *r)
{
    json_t *line;
    int status;

    while ((line = receive (r))) {
        json_t *go = json_object_get (line, "go");
        json_t *v = json_object_get (line, "status");
        if (go)
            meet_others (r, go);
        status = (int)json_integer_value (v);
        json_decref (line);
        if (v)
            return status == GATHER_AGAIN || status == GATHER_THIS_NODE ? status : GATHER_GO;
    }
    return judge_alone (r);
}

static void look (struct rank_check *r)
{
    struct check_place place = {
        .level = r->c->level,
        .local_rank = r->local_rank,
        .local_size = r->local_size,
    };

    health_run (check_table, &place, gather_times[r->c->level].probes, r->facts, r->findings);
}

int gather_rank (const struct gather_client *c, json_t **all)
{
    struct rank_check r = { .c = c, .stream.fd = -1, .server = -1 };
    int status, port = 0;

    r.deadline = monotonic () + gather_times[c->level].all;
    r.findings = json_array ();
    read_place (&r);
    handshake (&r);
    if (c->level > LEVEL_NONE && r.stream.fd >= 0 && r.local_rank == 0)
        r.server = peers_serve (c->key, r.rank == 0, &port, r.findings);
    find_facts (&r, port);
    look (&r);
    put_time (r.facts);
    send_line (&r, whole (&r));
    status = await (&r);
    peers_end (r.server);
    net_stream_close (&r.stream);
    if (all)
        *all = whole (&r);
    json_decref (r.facts);
    json_decref (r.findings);
    return status;
}
