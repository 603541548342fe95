/* SPDX-License-Identifier: Apache-2.0 */
/* dl check, and the two parts of it that the plugin starts. */
#include "launcher/nodecheck/command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/nodecheck/gather.h"
#include "launcher/nodecheck/rank.h"
#include "launcher/nodecheck/report.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/secret.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/rankenv.h"

enum { SECRET_S = 10 };

static long number (const char *name)
{
    return (long)environment_number (name, 0);
}

/* ---- the collector beside srun ---- */

/* The ports that a site's firewall lets through to srun, if it has such. */
static void srun_ports (char *buf, size_t size)
{
    FILE *f = fopen (getenv ("SLURM_CONF") ?: "/etc/slurm/slurm.conf", "re");
    static const char key[] = "SrunPortRange=";
    char line[1024];

    *buf = '\0';
    while (f && fgets (line, sizeof (line), f))
        if (!strncasecmp (line, key, strlen (key))) {
            line[strcspn (line, " \t\n")] = '\0';
            snprintf (buf, size, "%s", line + strlen (key));
        }
    if (f)
        fclose (f);
}

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
    char range[64], notes[PATH_MAX], key[SECRET_DIGITS + 1];

    if (level < 0)
        return EXIT_USAGE;
    g.level = (enum check_level)level;
    g.table = !strcmp (st->args[1], "table");
    g.notes = notes_path (notes, sizeof (notes));
    srun_ports (range, sizeof (range));
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
    const char *from = getenv ("DL_GATHER");
    char *space;

    c->address = getenv ("SLURM_LAUNCH_NODE_IPADDR");
    if (!from && number ("SLURM_PROCID") == 0 && number ("SLURM_NNODES") > 1)
        complain ("check: the collector of srun is unknown here (because of "
                  "--export=NONE, for example): each node is checked alone");
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
    struct gather_client c = { .level = st->full ? LEVEL_FULL : LEVEL_QUICK,
                               .quiet = true };
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

/* The collector of a step that was started without --dl-check is a child of
 * its rank 0.
 */
static pid_t start_collector (struct gather *g, int port)
{
    struct slurmdl_error err = { "" };
    pid_t pid;

    if (gather_open (g, port, NULL, &err) < 0) {
        complain ("check: port %d: %s", port, err.text);
        return -1;
    }
    if ((pid = subprocess_fork (SIGKILL)) == 0) {
        gather_serve (g);
        exit (0);
    }
    listen_close (&g->listener);
    return pid;
}

static int
await_secret (const char *name, unsigned char *key, struct slurmdl_error *err)
{
    double deadline = monotonic () + SECRET_S;
    struct slurmdl_error why;

    do {
        why = (struct slurmdl_error){ "" };
        if (secret_look_up (name, key, &why) == 0)
            return 0;
    } while (errno == ENOENT && monotonic () < deadline && usleep (50000) == 0);
    return errorf (err, "%s", why.text);
}

/* 'name' is that of its file; "": it has none. */
static int find_secret (char *name,
                        size_t size,
                        int port,
                        unsigned char *key,
                        struct slurmdl_error *err)
{
    int rv = secret_of_environment ("check", key, err);

    if (rv != 0)
        return rv < 0 ? -1 : 0;
    if (secret_step_name (name, size, port) < 0)
        return errorf (err, "SLURM_JOB_ID and SLURM_STEP_ID name no step");
    return number ("SLURM_PROCID") == 0 ? secret_make (name, key, err)
                                        : await_secret (name, key, err);
}

/* One machine with several slurmd: the nodes' names are no hosts. */
static const char *host_of_first (char *buf, size_t size)
{
    const char *list = getenv ("SLURM_STEP_NODELIST");
    char own[256] = "";
    const char *node = getenv ("SLURMD_NODENAME") ?: "";

    gethostname (own, sizeof (own) - 1);
    own[strcspn (own, ".")] = '\0';
    if (!list || layout_first_host (list, buf, size) < 0
        || strncmp (node, own, strlen (own)) || number ("SLURM_NNODES") < 2)
        snprintf (buf, size, "127.0.0.1");
    return buf;
}

static int together (const struct settings *st)
{
    struct gather g = { .level = st->full ? LEVEL_FULL : LEVEL_QUICK,
                        .table = st->table,
                        .json = st->json,
                        .parent = -1 };
    struct gather_client c = { .level = g.level,
                               .table = g.table,
                               .waits = true };
    long job = number ("SLURM_JOB_ID"), step = number ("SLURM_STEP_ID");
    struct rank_ports p = rankenv_ports (getenv ("SLURM_STEP_RESV_PORTS"),
                                         (uint32_t)job,
                                         (uint32_t)step,
                                         32768,
                                         1);
    char host[256], port[16], secret[SECRET_NAME] = "";
    struct slurmdl_error err = { "" };
    pid_t pid = -1;
    int status;

    if (find_secret (secret, sizeof (secret), p.second, c.key, &err) < 0) {
        complain ("check: each node is checked alone: %s", err.text);
        return alone (st);
    }
    memcpy (g.key, c.key, sizeof (g.key));
    snprintf (port, sizeof (port), "%d", p.second);
    c.address = host_of_first (host, sizeof (host));
    c.port = port;
    if (number ("SLURM_PROCID") == 0)
        pid = start_collector (&g, p.second);
    status = gather_rank (&c, NULL);
    if (pid > 0)
        waitpid (pid, NULL, 0);
    if (*secret && number ("SLURM_PROCID") == 0)
        secret_remove (secret);
    return status;
}

int cmd_check (const struct settings *st)
{
    signal (SIGPIPE, SIG_IGN);
    if (number ("SLURM_STEP_NUM_TASKS") > 1 && getenv ("SLURM_PROCID"))
        return together (st);
    return alone (st);
}
