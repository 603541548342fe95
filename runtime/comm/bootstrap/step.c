/* SPDX-License-Identifier: Apache-2.0 */
/* Find the ranks of a Slurm step and the address of rank 0 in the environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/method.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/clean.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/rank_environment.h"

/* Whether the node's name is not the host's.  Cluster nodes may have their own
 * names, or share a host, and resolving such names may take seconds.
 */
static bool is_no_host (void)
{
    const char *node = getenv ("SLURMD_NODENAME");
    char host[64] = "";

    if (!node || gethostname (host, sizeof (host) - 1) < 0)
        return false;
    return strcspn (node, ".") != strcspn (host, ".")
           || strncasecmp (node, host, strcspn (host, "."));
}

int boot_prepare (struct boot_place *p, struct slurmdl_error *err)
{
    if (getrandom (p->key, sizeof (p->key), 0) != sizeof (p->key))
        return errorf (err, "getrandom: %s", strerror (errno));
    p->has_key = true;
    return listen_open_range (&p->listener, NULL, 0, err);
}

void boot_compose (struct boot_place *p, char *notice)
{
    char key[SECRET_DIGITS + 1] = "-";
    char machine[64], hosts[256];

    address_machine (machine, sizeof (machine));
    if (boot_is_loopback (p->host)) /* the only address where it listens */
        snprintf (hosts, sizeof (hosts), "%s", address_name (p->host));
    else
        address_own (is_no_host () ? NULL : p->own, hosts, sizeof (hosts));
    if (!*p->notice || !p->has_key)
        secret_print (p->key, key);
    snprintf (notice, BOOT_NOTICE, "%d/%s/%s/%s", p->listener.port, key, *machine ? machine : "?",
              *hosts ? hosts : "-");
    handshake_forget (key, sizeof (key));
}

/* Make the text one word, because PMI allows nothing else. */
void boot_compose_failure (const char *why, char *notice)
{
    snprintf (notice, BOOT_NOTICE, "!%s", why);
    for (char *c = notice; *c; c++)
        if (*c == ' ' || *c == '\n')
            *c = '~';
}

static int take_failure (const char *notice, struct slurmdl_error *err)
{
    char why[BOOT_NOTICE];

    snprintf (why, sizeof (why), "%s", notice + 1);
    for (char *c = why; *c; c++)
        if (*c == '~')
            *c = ' ';
    errno = ECONNREFUSED;
    return errorf (err, "%s", clean_text (why));
}

/* A loopback address leads to rank 0 only on its own machine. */
static int take_hosts (struct boot_place *p, const char *machine, const char *hosts,
                       struct slurmdl_error *err)
{
    char own[64];

    address_machine (own, sizeof (own));
    if (*own && !strcmp (own, machine))
        hosts = boot_is_loopback (hosts) ? hosts : "127.0.0.1";
    else if (boot_is_loopback (hosts) || !strcmp (hosts, "-")) {
        errno = ECONNREFUSED;
        return errorf (err, "rank 0 listens only on the loopback of another node: give all ranks "
                            "an address that they can reach (DL_COMM_ADDRESS, MASTER_ADDR)");
    }
    snprintf (p->host, sizeof (p->host), "%s", hosts);
    return 0;
}

int boot_parse (struct boot_place *p, const char *notice, struct slurmdl_error *err)
{
    char key[SECRET_DIGITS + 1], machine[64], hosts[256];
    int rv;

    if (*notice == '!')
        return take_failure (notice, err);
    errno = EPROTO;
    if (sscanf (notice, "%d/%32[^/]/%63[^/]/%255s", &p->port, key, machine, hosts) != 4)
        return errorf (err, "rank 0 runs another release of slurm-dl");
    rv = p->has_key && !strcmp (key, "-") ? 0 : secret_parse (key, p->key);
    handshake_forget (key, sizeof (key));
    if (rv < 0)
        return errorf (err, "rank 0 runs another release of slurm-dl");
    return take_hosts (p, machine, hosts, err);
}

static void find_step_ranks (struct boot_place *p)
{
    p->rank = environment_number ("RANK", -1);
    p->size = environment_number ("WORLD_SIZE", -1);
    if (p->rank >= 0 && p->size > 0)
        return;
    p->rank = environment_number ("SLURM_PROCID", -1);
    p->size = environment_number ("SLURM_STEP_NUM_TASKS", environment_number ("SLURM_NTASKS", -1));
    /* a batch script is one process, however many tasks the job has */
    if (p->rank < 0 || p->size < 1 || !getenv ("SLURM_STEP_NODELIST")) {
        p->rank = 0;
        p->size = 1;
    }
}

static int ephemeral (void)
{
    FILE *f = fopen ("/proc/sys/net/ipv4/ip_local_port_range", "re");
    int first = 32768;

    if (f && fscanf (f, "%d", &first) != 1)
        first = 32768;
    if (f)
        fclose (f);
    return first;
}

/* Choose a port that all ranks know; others may know it too. */
static int find_step_address (struct boot_place *p)
{
    const char *hosts = getenv ("SLURM_STEP_NODELIST");
    struct rank_ports ports;

    if (!hosts || layout_first_host (hosts, p->host, sizeof (p->host)) < 0)
        return -1;
    ports = rank_environment_ports (
        getenv ("SLURM_STEP_RESV_PORTS"), (uint32_t)environment_number ("SLURM_JOB_ID", 0),
        (uint32_t)environment_number ("SLURM_STEP_ID", 0), ephemeral (), 1);
    p->port = ports.third;
    p->nearby = true;
    return 0;
}

/* Whether Slurm started the ranks, and not another launcher. */
static bool is_of_slurm (const struct boot_place *p)
{
    return getenv ("SLURM_STEP_NODELIST")
           && (!getenv ("MASTER_ADDR")
               || (environment_number ("SLURM_PROCID", -1) == p->rank
                   && environment_number ("SLURM_STEP_NUM_TASKS", -1) == p->size));
}

bool boot_is_loopback (const char *host)
{
    return !strncmp (host, "127.", 4) || !strcmp (host, "::1") || !strcasecmp (host, "localhost");
}

static int find_address (struct boot_place *p, const struct slurmdl_comm_options *o,
                         struct slurmdl_error *err)
{
    const char *address = o->address ? o->address : getenv ("DL_COMM_ADDRESS");
    const char *master = getenv ("MASTER_ADDR");
    long port = environment_number ("MASTER_PORT", 0);

    if (address && *address) {
        p->is_named = true;
        if (address_split (address, p->host, sizeof (p->host), &p->port) == 0)
            return 0;
        return errorf (err, "the address '%.100s' is not HOST:PORT", address);
    }
    if (is_of_slurm (p) && find_step_address (p) == 0)
        return 0;
    /* the launcher itself listens on that port */
    if (master && *master && port > 0 && port < 65535) {
        snprintf (p->host, sizeof (p->host), "%s", master);
        p->port = (int)port + 1;
        return 0;
    }
    errno = EINVAL;
    return errorf (err, "the address of rank 0 is unknown: start the ranks with "
                        "srun, or set DL_COMM_ADDRESS to HOST:PORT");
}

/* Name the notice so that all ranks use the same name, and no others if there is a
 * secret.  Do not include the ports that Slurm has reserved, because the components
 * of a heterogeneous job have different ones.
 */
static void name_notice (struct boot_place *p)
{
    unsigned char digest[HANDSHAKE_KEY] = { 0 };
    char own[64] = "", what[SECRET_DIGITS + 16], hex[SECRET_DIGITS + 1];
    int port = p->is_named || !is_of_slurm (p) ? p->port : 0;
    int n;

    if (p->has_key)
        handshake_derive (p->key, "notice", digest, sizeof (digest));
    secret_print (digest, hex);
    snprintf (what, sizeof (what), "%d", port);
    if (p->has_key)
        snprintf (what, sizeof (what), "%d.%.16s", port, hex);
    if (is_of_slurm (p) && notice_step_name (p->notice, sizeof (p->notice), what) == 0)
        return;
    /* each machine has its own loopback address */
    if (boot_is_loopback (p->host))
        gethostname (own, sizeof (own) - 1);
    n = snprintf (p->notice, sizeof (p->notice), "%.80s%.80s.%s", own, p->host, what);
    for (int i = 0; i < n; i++)
        if (p->notice[i] == '/')
            p->notice[i] = '_';
}

static int find_secret (struct boot_place *p, struct slurmdl_error *err)
{
    enum secret_result secret = secret_of_environment ("comm", p->key, err);

    if (secret == SECRET_INVALID)
        return -1;
    p->has_key = secret == SECRET_FOUND;
    name_notice (p);
    return 0;
}

static bool step_is_there (void)
{
    return true;
}

static int step_find (struct boot_place *p, const struct slurmdl_comm_options *o,
                      struct slurmdl_error *err)
{
    p->rank = o->rank;
    p->size = o->size;
    if (o->size == 0)
        find_step_ranks (p);
    if (p->size < 1 || p->rank < 0 || p->rank >= p->size) {
        errno = EINVAL;
        return errorf (err, "rank %ld of %ld: no such rank", p->rank, p->size);
    }
    return p->size == 1 ? 0 : find_address (p, o, err) < 0 ? -1 : find_secret (p, err);
}

static void step_leave (void)
{
}

const struct boot_method boot_tcp = { "tcp", step_is_there, step_find, step_leave };

struct rank_layout *boot_layout (const struct boot_place *p)
{
    struct layout_facts f = { .hosts = getenv ("SLURM_STEP_NODELIST"),
                              .tasks = getenv ("SLURM_STEP_TASKS_PER_NODE"),
                              .distribution = getenv ("SLURM_DISTRIBUTION"),
                              .plane = environment_number ("SLURM_DIST_PLANESIZE", 0),
                              .ranks = environment_number ("SLURM_STEP_NUM_TASKS", 0),
                              .node = environment_number ("SLURM_NODEID", 0),
                              .gtids = getenv ("SLURM_GTIDS") };
    struct rank_layout *l;

    if (!f.hosts || !f.tasks || environment_number ("SLURM_HET_SIZE", 0) > 1 || f.ranks != p->size
        || environment_number ("SLURM_PROCID", -1) != p->rank)
        return NULL;
    if ((l = malloc (sizeof (*l))) && layout_fill (l, &f) == 0)
        return l;
    free (l);
    return NULL;
}
