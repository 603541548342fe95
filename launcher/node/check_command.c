/* SPDX-License-Identifier: Apache-2.0 */
/* dl check, and the two parts of it that the plugin starts. */
#include "launcher/node/check_command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/node/check_report.h"
#include "launcher/node/expected.h"
#include "launcher/node/gather.h"
#include "launcher/node/rank_check.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/board.h"
#include "runtime/comm/net/notice.h"
#include "runtime/comm/net/secret.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/rankenv.h"
#include "runtime/rank/slurmconf.h"

enum { NOTICE_S = 10, ASK_S = 2 };

static long number (const char *name)
{
    return (long)environment_number (name, 0);
}

/* ---- the collector beside srun ---- */

/* The launcher looks into the folder of the attempt whose srun this is. */
static const char *notes_path (char *buf, size_t size)
{
    const char *dir = getenv ("DL_ATTEMPT_DIR");

    if (!dir || snprintf (buf, size, "%s/%s", dir, GATHER_NOTES) >= (int)size)
        return NULL;
    unlink (buf);
    return buf;
}

int cmd_gather (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct gather g = { .parent = 0 };
    int level = gather_level (st->args[0]);
    char range[64] = "", notes[PATH_MAX], key[SECRET_DIGITS + 1];
    long from, to;

    if (level < 0)
        return EXIT_USAGE;
    g.level = (enum check_level)level;
    g.table = !strcmp (st->args[1], "table");
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

/* "PORT TOKEN", from srun. */
static void find_collector (struct gather_client *c, char *text, size_t size)
{
    const char *from = getenv ("SLURM_DL_GATHER");
    char *space;

    c->address = getenv ("SLURM_LAUNCH_NODE_IPADDR");
    if (!from && number ("SLURM_PROCID") == 0 && number ("SLURM_NNODES") > 1)
        complain ("check: the collector of srun is unknown here: each node is checked alone");
    if (!from || !c->address || snprintf (text, size, "%s", from) >= (int)size
        || !(space = strchr (text, ' '))) {
        c->address = NULL;
        return;
    }
    *space = '\0';
    c->port = text;
    /* one of zeros reaches no collector */
    if (secret_parse (space + 1, c->key) < 0)
        memset (c->key, 0, sizeof (c->key));
}

int cmd_check_rank (const struct settings *st)
{
    struct gather_client c = { 0 };
    int level = gather_level (st->args[0]);
    char text[128];

    if (level < 0)
        return EXIT_USAGE;
    c.level = (enum check_level)level;
    c.table = !strcmp (st->args[1], "table");
    find_collector (&c, text, sizeof (text));
    return gather_rank (&c, NULL);
}

/* ---- by hand ---- */

static int alone (const struct settings *st)
{
    struct gather_client c = { .level = st->full ? LEVEL_FULL : LEVEL_QUICK, .quiet = true };
    struct diagnosis *d;
    char line[512];
    json_t *one;
    int status = gather_rank (&c, &one);

    if (st->table && !st->json)
        ranks_print (&one, 1, stdout);
    d = diagnosis_create (&one, 1, NULL);
    if (d && st->json)
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
    struct board_post post; /* of rank 0 */
};

/* What rank 0 publishes: "PORT KEY MACHINE HOSTS", KEY "-" if all have it. */
static void publish (struct collector_place *m, const struct gather *g, struct slurmdl_error *err)
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

static int take_notice (struct collector_place *m, const char *text)
{
    char key[SECRET_DIGITS + 1], machine[64], own[64];
    int rv;

    if (sscanf (text, "%15s %32s %63s %255s", m->port, key, machine, m->host) != 4)
        return -1;
    rv = m->has_key ? 0 : secret_parse (key, m->c->key);
    address_machine (own, sizeof (own));
    if (*own && !strcmp (own, machine))
        snprintf (m->host, sizeof (m->host), "127.0.0.1");
    return rv;
}

/* Who has the secret asks srun where the notice is not seen; where srun has no
 * place for it, the step's own port is tried.
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
        if (notice_get (m->name, text, &why) == 0 && take_notice (m, text) == 0)
            return 0;
        never = errno != ENOENT;
        if (never && !asks)
            break;
        if (asks && (late || never) && board_get (m->c->key, m->name, text, now + ASK_S, NULL) == 0
            && take_notice (m, text) == 0)
            return 0;
        usleep (late ? 500000 + (useconds_t)(number ("SLURM_PROCID") % 100) * 5000 : 50000);
    }
    if (!m->has_key || asks || !list || layout_first_host (list, m->host, sizeof (m->host)) < 0)
        return errorf (err, "%s", why.text);
    snprintf (m->port, sizeof (m->port), "%d", port);
    return 0;
}

/* The collector of a step that was started without --dl-check is a child of
 * its rank 0; at any port, or, as above, at the step's, if that is free.
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
    publish (m, g, &err);
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
    int rv = secret_of_environment ("check", m->c->key, err);

    if (rv < 0)
        return -1;
    m->has_key = rv > 0;
    if (notice_step_name (m->name, sizeof (m->name), "check") < 0)
        return errorf (err, "SLURM_JOB_ID and SLURM_STEP_ID name no step");
    if (m->has_key || !first || getrandom (m->c->key, sizeof (m->c->key), 0) == sizeof (m->c->key))
        return 0;
    return errorf (err, "getrandom: %s", strerror (errno));
}

static int together (const struct settings *st)
{
    struct gather g = { .level = st->full ? LEVEL_FULL : LEVEL_QUICK,
                        .table = st->table,
                        .json = st->json,
                        .parent = -1 };
    struct gather_client c = { .level = g.level, .table = g.table, .waits = true };
    struct rank_ports p =
        rankenv_ports (getenv ("SLURM_STEP_RESV_PORTS"), (uint32_t)number ("SLURM_JOB_ID"),
                       (uint32_t)number ("SLURM_STEP_ID"), 32768, 1);
    struct collector_place m = { .c = &c };
    bool first = number ("SLURM_PROCID") == 0;
    struct slurmdl_error err = { "" };
    pid_t pid = -1;
    int status;

    if (find_key (&m, first, &err) < 0 || (!first && find_notice (&m, p.second, &err) < 0)) {
        complain ("check: each node is checked alone: %s", err.text);
        return alone (st);
    }
    memcpy (g.key, c.key, sizeof (g.key));
    if (first && (pid = start_collector (&m, &g, p.second)) < 0)
        return alone (st);
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

int cmd_check (const struct settings *st)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", (long long)st->gpus);
    if (st->gpus >= 0)
        setenv (EXPECTED_VARIABLE, text, 1);
    signal (SIGPIPE, SIG_IGN);
    if (number ("SLURM_STEP_NUM_TASKS") > 1 && getenv ("SLURM_PROCID"))
        return together (st);
    return alone (st);
}
