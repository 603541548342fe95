/* SPDX-License-Identifier: Apache-2.0 */
/* dl check, and the two programs that the plugin starts for --dl-check. */
#include <errno.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/node/checks.h"
#include "launcher/node/diagnosis.h"
#include "launcher/node/node.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/board.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/notice.h"
#include "runtime/comm/net/secret.h"
#include "runtime/comm/net/socket.h"
#include "runtime/comm/net/stream.h"
#include "runtime/host/topology.h"
#include "runtime/network/fabric.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/rank_environment.h"
#include "runtime/rank/slurmconf.h"

/* ---- one rank: facts, checks, and the answer of the collector ---- */

struct gather_client {
    enum check_level level;
    bool table;
    bool quiet;                 /* do not print findings */
    bool waits;                 /* the collector may not listen yet, so retry */
    const char *address, *port; /* NULL: no collector */
    unsigned char key[HANDSHAKE_KEY];
};

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
    struct net_stream stream; /* to the collector; fd -1: none */
    pid_t server;
    json_t *facts, *findings;
    char host[NAME_TEXT];
};

/* ---- facts ---- */

static void read_rank_place (struct rank_check *r)
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

static void put_text_fact (json_t *to, const char *name, const char *value)
{
    if (value)
        json_object_set_new (to, name, json_string (value));
}

static json_t *layout_facts (void)
{
    json_t *at = json_object ();

    put_text_fact (at, "hosts", getenv ("SLURM_STEP_NODELIST"));
    put_text_fact (at, "tasks", getenv ("SLURM_STEP_TASKS_PER_NODE"));
    put_text_fact (at, "distribution", getenv ("SLURM_DISTRIBUTION"));
    put_text_fact (at, "gtids", getenv ("SLURM_GTIDS"));
    json_object_set_new (at, "plane",
                         json_integer (environment_number ("SLURM_DIST_PLANESIZE", 0)));
    json_object_set_new (at, "node", json_integer (environment_number ("SLURM_NODEID", 0)));
    return at;
}

static void put_cores_fact (json_t *facts)
{
    struct cpu_set set = { { 0 } };
    char list[256];

    if (sched_getaffinity (0, sizeof (set), (cpu_set_t *)&set) == 0)
        put_text_fact (facts, "cores", cpus_print (&set, list, sizeof (list)));
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
            put_text_fact (facts, "address", text);
    freeifaddrs (list);
}

/* Send the network that the rank will use: the choice of --dl-bind=nic, or else the fabric. */
static void put_network (json_t *facts)
{
    struct fabric *f = xcalloc (1, sizeof (*f));
    const char *nic = getenv ("UCX_NET_DEVICES");
    const struct fabric_interface *i;
    char text[2 * FABRIC_NAME];

    fabric_read ("/sys", f);
    i = fabric_nccl_choice (f);
    put_address (facts, i ? i->name : "lo");
    snprintf (text, sizeof (text), "%s", i ? i->name : "lo");
    for (int k = 0; k < f->nports; k++)
        if (f->ports[k].kind == f->kind && !f->ports[k].unused) {
            snprintf (text, sizeof (text), "%s %s", fabric_names[f->kind], f->ports[k].name);
            break;
        }
    put_text_fact (facts, "nic", nic ? nic : text);
    free (f);
}

static void put_time (json_t *facts)
{
    struct timespec now;

    clock_gettime (CLOCK_REALTIME, &now);
    json_object_set_new (facts, "time", json_real ((double)now.tv_sec + (double)now.tv_nsec / 1e9));
}

/* Report the parent's pid: the parent waits for this process, and then becomes the program. */
static void find_facts (struct rank_check *r, int peer_port)
{
    r->facts = json_pack ("{s:i, s:i, s:s, s:i, s:i}", "rank", (int)r->rank, "local_rank",
                          (int)r->local_rank, "host", r->host, "pid", (int)getppid (), "peer_port",
                          peer_port);
    if (!r->facts) /* the name of the host is not UTF-8 */
        r->facts = json_object ();
    put_cores_fact (r->facts);
    put_network (r->facts);
}

/* ---- the collector ---- */

static int connect_to_collector (const struct gather_client *c)
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

static void lose_collector (struct rank_check *r, const char *what)
{
    if (r->stream.fd >= 0)
        close (r->stream.fd);
    r->stream.fd = -1;
    if (r->local_rank == 0)
        complain ("check: rank %ld on %s %s %s port %s: %s; it checks only its own node", r->rank,
                  r->host, what, r->c->address, r->c->port, strerror (errno));
}

static void send_line (struct rank_check *r, json_t *line)
{
    if (r->stream.fd >= 0 && gather_send (&r->stream, line, r->deadline) < 0)
        lose_collector (r, "cannot send to the collector at");
    json_decref (line);
}

static int introduce_rank (struct rank_check *r)
{
    struct handshake with = gather_handshake (r->c->key);
    json_t *self = json_pack ("{s:i, s:i, s:o*}", "rank", (int)r->rank, "size", (int)r->size,
                              "layout", r->local_rank ? NULL : layout_facts ());
    char *text = json_dumps (self, JSON_COMPACT);
    int rv;

    if (!text)
        out_of_memory ();
    rv = handshake_call (r->stream.fd, &with, text, strlen (text), monotonic () + CONNECT_S,
                         &r->stream.seal);
    free (text);
    json_decref (self);
    return rv;
}

static void handshake_collector (struct rank_check *r)
{
    int rv = -1;

    if (!r->c->address)
        return;
    /* retry: the collector may have dropped this connection to admit others */
    for (int i = 0; rv < 0 && i < TRIES; i++) {
        if (r->stream.fd >= 0)
            close (r->stream.fd);
        if ((r->stream.fd = connect_to_collector (r->c)) < 0)
            break;
        rv = introduce_rank (r);
    }
    if (r->stream.fd < 0)
        lose_collector (r, "cannot reach the collector at");
    else if (rv < 0)
        lose_collector (r, "cannot send to the collector at");
}

static json_t *receive_answer (struct rank_check *r)
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
        lose_collector (r, "gets no answer from the collector at");
    }
    return line;
}

/* ---- the answer ---- */

static void check_with_peers (struct rank_check *r, const json_t *go)
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

static json_t *rank_json (const struct rank_check *r)
{
    return json_pack ("{s:O, s:O}", "facts", r->facts, "findings", r->findings);
}

/* Decide by this rank's own findings. */
static enum gather_status judge_alone (const struct rank_check *r)
{
    json_t *one = rank_json (r);
    struct diagnosis *d = diagnosis_create (&one, 1, NULL);
    char text[WHY_TEXT + NAME_TEXT];
    enum gather_status status = GATHER_GO;

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

static enum gather_status await_verdict (struct rank_check *r)
{
    json_t *line;
    int status;

    while ((line = receive_answer (r))) {
        json_t *go = json_object_get (line, "go");
        json_t *v = json_object_get (line, "status");
        if (go)
            check_with_peers (r, go);
        status = (int)json_integer_value (v);
        json_decref (line);
        if (v)
            return status == GATHER_AGAIN || status == GATHER_THIS_NODE ? status : GATHER_GO;
    }
    return judge_alone (r);
}

static void run_rank_checks (struct rank_check *r)
{
    struct check_place place = {
        .level = r->c->level,
        .local_rank = r->local_rank,
        .local_size = r->local_size,
    };

    health_run (check_table, &place, gather_times[r->c->level].probes, r->facts, r->findings);
}

/* Gather the facts and findings of this rank.  If there is a collector, send them and wait for its
 * answer; otherwise decide by them alone.  Unless 'all' is NULL, '*all' gets the facts and
 * findings; the caller releases it.
 */
static enum gather_status gather_rank (const struct gather_client *c, json_t **all)
{
    struct rank_check r = { .c = c, .stream.fd = -1, .server = -1 };
    enum gather_status status;
    int port = 0;

    r.deadline = monotonic () + gather_times[c->level].all;
    r.findings = json_array ();
    read_rank_place (&r);
    handshake_collector (&r);
    if (c->level > LEVEL_NONE && r.stream.fd >= 0 && r.local_rank == 0)
        r.server = peers_serve (c->key, r.rank == 0, &port, r.findings);
    find_facts (&r, port);
    run_rank_checks (&r);
    put_time (r.facts);
    send_line (&r, rank_json (&r));
    status = await_verdict (&r);
    peers_end (r.server);
    net_stream_close (&r.stream);
    if (all)
        *all = rank_json (&r);
    json_decref (r.facts);
    json_decref (r.findings);
    return status;
}

enum { NOTICE_S = 10, ASK_S = 2 };

/* ---- the collector beside srun ---- */

/* Write the notes to the folder of the attempt, where the launcher expects them. */
static const char *notes_path (char *buf, size_t size)
{
    const char *dir = getenv ("DL_ATTEMPT_DIR");

    if (!dir || snprintf (buf, size, "%s/%s", dir, GATHER_NOTES) >= (int)size)
        return NULL;
    unlink (buf);
    return buf;
}

int cmd_gather (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct gather g = { .parent = 0 };
    int level = gather_level (line->args[0]);
    char range[64] = "", notes[PATH_MAX], key[SECRET_DIGITS + 1];
    long from, to;

    if (level < 0)
        return EXIT_USAGE;
    g.level = (enum check_level)level;
    g.table = !strcmp (line->args[1], "table");
    g.notes = notes_path (notes, sizeof (notes));
    if (slurmconf_srun_ports (&from, &to) == 0)
        snprintf (range, sizeof (range), "%ld-%ld", from, to);
    if (getrandom (g.key, sizeof (g.key), 0) != sizeof (g.key))
        errorf (&err, "getrandom: %s", strerror (errno));
    if (*err.text || gather_open (&g, 0, range, &err) < 0)
        return fail (&err);
    secret_print (g.key, key);
    printf ("%d %s\n", g.listener.port, key);
    fflush (stdout);
    fclose (stdout);
    signal (SIGPIPE, SIG_IGN);
    gather_serve (&g);
    return EXIT_OK;
}

/* ---- a rank ---- */

/* Parse "PORT KEY", which the collector of srun put into the environment. */
static void find_collector (struct gather_client *c, char *text, size_t size)
{
    const char *from = getenv ("SLURM_DL_GATHER");
    char *space;

    c->address = getenv ("SLURM_LAUNCH_NODE_IPADDR");
    if (!from && environment_number ("SLURM_PROCID", 0) == 0
        && environment_number ("SLURM_NNODES", 0) > 1)
        complain ("check: cannot find srun's collector: each node is checked alone");
    if (!from || !c->address || snprintf (text, size, "%s", from) >= (int)size
        || !(space = strchr (text, ' '))) {
        c->address = NULL;
        return;
    }
    *space = '\0';
    c->port = text;
    /* the collector rejects a key of zeros, so the rank is checked alone */
    if (secret_parse (space + 1, c->key) < 0)
        memset (c->key, 0, sizeof (c->key));
}

int cmd_check_rank (const struct command_line *line)
{
    struct gather_client c = { 0 };
    int level = gather_level (line->args[0]);
    char text[128];

    if (level < 0)
        return EXIT_USAGE;
    c.level = (enum check_level)level;
    c.table = !strcmp (line->args[1], "table");
    find_collector (&c, text, sizeof (text));
    return gather_rank (&c, NULL);
}

/* ---- dl check ---- */

static int check_alone (const struct check_options *opt)
{
    struct gather_client c = { .level = opt->full ? LEVEL_FULL : LEVEL_QUICK, .quiet = true };
    struct diagnosis *d;
    char line[512];
    json_t *one;
    enum gather_status status = gather_rank (&c, &one);

    if (opt->table && !opt->json)
        ranks_print (&one, 1, stdout);
    d = diagnosis_create (&one, 1, NULL);
    if (d && opt->json)
        diagnosis_json (d, stdout);
    else if (d) {
        diagnosis_print (d, stdout);
        diagnosis_line (d, line, sizeof (line));
        printf ("dl: check: %s\n", line);
    }
    diagnosis_destroy (d);
    json_decref (one);
    return status;
}

/* Where the collector of this step is. */
struct collector_place {
    struct gather_client *c;
    char name[NOTICE_NAME], host[256], port[16];
    bool has_key;
    struct board_post post; /* used by rank 0 */
};

/* Publish "PORT KEY MACHINE HOSTS".  KEY is "-" if all ranks already have it. */
static void publish_collector (struct collector_place *m, const struct gather *g,
                               struct slurmdl_error *err)
{
    char key[SECRET_DIGITS + 1] = "-", machine[64], hosts[256];
    char text[NOTICE_TEXT];

    if (!m->has_key)
        secret_print (g->key, key);
    address_machine (machine, sizeof (machine));
    address_own (NULL, hosts, sizeof (hosts));
    snprintf (text, sizeof (text), "%d %s %s %s", g->listener.port, key, *machine ? machine : "?",
              *hosts ? hosts : "-");
    notice_put (m->name, text, err);
    if (m->has_key) {
        board_post (&m->post, m->c->key, m->name, text);
        board_wait (&m->post, monotonic () + ASK_S);
    }
    handshake_forget (text, sizeof (text));
}

/* Parse what publish_collector() published. */
static int take_notice (struct collector_place *m, const char *text, struct slurmdl_error *err)
{
    char key[SECRET_DIGITS + 1], machine[64], own[64];

    if (sscanf (text, "%15s %32s %63s %255s", m->port, key, machine, m->host) != 4
        || (!m->has_key && secret_parse (key, m->c->key) < 0)) {
        errno = EBADMSG;
        return errorf (err, "~/.slurm-dl/%s: not the address of a collector", m->name);
    }
    address_machine (own, sizeof (own));
    if (*own && !strcmp (own, machine))
        snprintf (m->host, sizeof (m->host), "127.0.0.1");
    return 0;
}

/* Wait for rank 0's notice.  A rank that has the secret asks srun if the notice does not appear, or
 * falls back to the port derived from the step if srun does not hold notices.
 */
static int find_notice (struct collector_place *m, int port, struct slurmdl_error *err)
{
    double begun = monotonic (), now = begun;
    bool asks = m->has_key && board_is_there ();
    const char *list = getenv ("SLURM_STEP_NODELIST");
    struct slurmdl_error why;
    char text[NOTICE_TEXT];

    for (; now < begun + NOTICE_S; now = monotonic ()) {
        bool late = now > begun + 1, never;
        why = (struct slurmdl_error){ "" };
        if (notice_get (m->name, text, &why) == 0 && take_notice (m, text, &why) == 0)
            return 0;
        never = errno != ENOENT;
        if (never && !asks)
            break;
        if (asks && (late || never) && board_get (m->c->key, m->name, text, now + ASK_S, NULL) == 0
            && take_notice (m, text, NULL) == 0)
            return 0;
        usleep (late ? 500000 + (useconds_t)(environment_number ("SLURM_PROCID", 0) % 100) * 5000
                     : 50000);
    }
    if (!m->has_key || asks || !list || layout_first_host (list, m->host, sizeof (m->host)) < 0)
        return errorf (err, "%s", why.text);
    snprintf (m->port, sizeof (m->port), "%d", port);
    return 0;
}

/* Start the collector as a child of rank 0, for a step without --dl-check.  It listens on any port,
 * unless the other ranks have only the step's port to find it: then it tries that port first.
 */
static pid_t start_collector (struct collector_place *m, struct gather *g, int port)
{
    struct slurmdl_error err = { "" };
    pid_t pid;

    if (!m->has_key || board_is_there ())
        port = 0;
    if (gather_open (g, port, NULL, NULL) < 0 && gather_open (g, 0, NULL, &err) < 0) {
        complain ("check: %s", err.text);
        return -1;
    }
    publish_collector (m, g, &err);
    if (*err.text && !m->post.is_posted && (!m->has_key || g->listener.port != port))
        complain ("check: each node is checked alone: %s", err.text);
    snprintf (m->host, sizeof (m->host), "127.0.0.1");
    snprintf (m->port, sizeof (m->port), "%d", g->listener.port);
    if ((pid = subprocess_fork (SIGKILL)) == 0) {
        gather_serve (g);
        exit (0);
    }
    listen_close (&g->listener);
    return pid;
}

static int find_key (struct collector_place *m, bool first, struct slurmdl_error *err)
{
    enum secret_result secret = secret_of_environment ("check", m->c->key, err);

    if (secret == SECRET_INVALID)
        return -1;
    m->has_key = secret == SECRET_FOUND;
    if (notice_step_name (m->name, sizeof (m->name), "check") < 0)
        return errorf (err, "SLURM_JOB_ID and SLURM_STEP_ID do not name a step");
    if (m->has_key || !first || getrandom (m->c->key, sizeof (m->c->key), 0) == sizeof (m->c->key))
        return 0;
    return errorf (err, "getrandom: %s", strerror (errno));
}

static int check_together (const struct check_options *opt)
{
    struct gather g = { .level = opt->full ? LEVEL_FULL : LEVEL_QUICK,
                        .table = opt->table,
                        .json = opt->json,
                        .parent = -1 };
    struct gather_client c = { .level = g.level, .table = g.table, .waits = true };
    struct rank_ports p = rank_environment_ports (
        getenv ("SLURM_STEP_RESV_PORTS"), (uint32_t)environment_number ("SLURM_JOB_ID", 0),
        (uint32_t)environment_number ("SLURM_STEP_ID", 0), 32768, 1);
    struct collector_place m = { .c = &c };
    bool first = environment_number ("SLURM_PROCID", 0) == 0;
    struct slurmdl_error err = { "" };
    pid_t pid = -1;
    int status;

    if (find_key (&m, first, &err) < 0 || (!first && find_notice (&m, p.second, &err) < 0)) {
        complain ("check: each node is checked alone: %s", err.text);
        return check_alone (opt);
    }
    memcpy (g.key, c.key, sizeof (g.key));
    if (first && (pid = start_collector (&m, &g, p.second)) < 0)
        return check_alone (opt);
    c.address = m.host;
    c.port = m.port;
    status = gather_rank (&c, NULL);
    if (pid > 0) {
        waitpid (pid, NULL, 0);
        notice_remove (m.name);
        board_end (&m.post);
    }
    return status;
}

int cmd_check (const struct command_line *line)
{
    const struct check_options *opt = line->options;
    char text[32];

    snprintf (text, sizeof (text), "%lld", (long long)opt->gpus);
    if (opt->gpus >= 0)
        setenv (EXPECTED_VARIABLE, text, 1);
    signal (SIGPIPE, SIG_IGN);
    if (environment_number ("SLURM_STEP_NUM_TASKS", 0) > 1 && getenv ("SLURM_PROCID"))
        return check_together (opt);
    return check_alone (opt);
}
