/* SPDX-License-Identifier: Apache-2.0 */
/* What the step says of its ranks, and where they meet. */
#include "runtime/comm/boot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/boottcp.h"
#include "runtime/comm/socket.h"
#include "runtime/error.h"
#include "runtime/layout.h"
#include "runtime/rankenv.h"

enum { BYTES_MAX = 4096 };

struct boot {
    const char *name;
    struct boot_place place;
    struct tree tree;
    struct rank_layout *layout; /* NULL: not known */
};

/* A number that a variable gives; 'otherwise' if it does not. */
static long variable (const char *name, long otherwise)
{
    const char *value = getenv (name);
    char *stop;
    long n;

    if (!value || !*value)
        return otherwise;
    errno = 0;
    n = strtol (value, &stop, 10);
    return *stop || errno ? otherwise : n;
}

static void find_ranks (struct boot_place *p)
{
    p->rank = variable ("RANK", -1);
    p->size = variable ("WORLD_SIZE", -1);
    if (p->rank >= 0 && p->size > 0)
        return;
    p->rank = variable ("SLURM_PROCID", -1);
    p->size = variable ("SLURM_STEP_NUM_TASKS", variable ("SLURM_NTASKS", -1));
    /* a batch script is one process, whatever the job's tasks are */
    if (p->rank < 0 || p->size < 1 || !getenv ("SLURM_STEP_NODELIST")) {
        p->rank = 0;
        p->size = 1;
    }
}

/* Of an ordinary step only, and if the ranks are the step's. */
static void find_layout (struct boot *b)
{
    struct layout_facts f = { .hosts = getenv ("SLURM_STEP_NODELIST"),
                              .tasks = getenv ("SLURM_STEP_TASKS_PER_NODE"),
                              .distribution = getenv ("SLURM_DISTRIBUTION"),
                              .plane = variable ("SLURM_DIST_PLANESIZE", 0),
                              .ranks = variable ("SLURM_STEP_NUM_TASKS", 0),
                              .node = variable ("SLURM_NODEID", 0),
                              .gtids = getenv ("SLURM_GTIDS") };

    if (!f.hosts || !f.tasks || variable ("SLURM_HET_SIZE", 0) > 1
        || f.ranks != b->place.size
        || variable ("SLURM_PROCID", -1) != b->place.rank)
        return;
    if (!(b->layout = malloc (sizeof (*b->layout))))
        return;
    if (layout_fill (b->layout, &f) < 0) {
        free (b->layout);
        b->layout = NULL;
    }
    b->place.layout = b->layout;
}

static double find_timeout (const struct slurmdl_comm_options *o)
{
    const char *value = getenv ("DL_COMM_TIMEOUT");
    double t = o->timeout;

    if (t <= 0 && value)
        t = strtod (value, NULL);
    return t > 0 && t < 1e6 ? t : 300;
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

/* The ports that the plugin would have chosen. */
static int find_step_address (struct boot_place *p)
{
    const char *hosts = getenv ("SLURM_STEP_NODELIST");
    struct rank_ports ports;

    if (!hosts || layout_first_host (hosts, p->host, sizeof (p->host)) < 0)
        return -1;
    ports = rankenv_ports (getenv ("SLURM_STEP_RESV_PORTS"),
                           (uint32_t)variable ("SLURM_JOB_ID", 0),
                           (uint32_t)variable ("SLURM_STEP_ID", 0),
                           ephemeral (),
                           1);
    p->port = ports.comm;
    return 0;
}

static int find_address (const struct slurmdl_comm_options *o,
                         struct boot_place *p,
                         struct slurmdl_error *err)
{
    const char *address = o->address ? o->address : getenv ("DL_COMM_ADDRESS");
    const char *master = getenv ("MASTER_ADDR");
    long port = variable ("MASTER_PORT", 0);

    if (address && *address) {
        if (socket_split (address, p->host, sizeof (p->host), &p->port) == 0)
            return 0;
        return errorf (err, "the address '%s' is not HOST:PORT", address);
    }
    if (find_step_address (p) == 0)
        return 0;
    /* what started the ranks without Slurm listens at that port itself */
    if (master && *master && port > 0 && port < 65535) {
        snprintf (p->host, sizeof (p->host), "%s", master);
        p->port = (int)port + 1;
        return 0;
    }
    errno = EINVAL;
    return errorf (err,
                   "where rank 0 listens is not known: start the ranks with "
                   "srun, or set DL_COMM_ADDRESS to HOST:PORT");
}

static uint64_t hash (uint64_t h, const char *text)
{
    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return (h ^ 0xff) * 0x100000001b3u;
}

/* FNV-1a over what the ranks of a step have in common, and others not. */
static uint64_t find_key (void)
{
    static const char *const names[] = { "SLURM_JOB_ID",
                                         "SLURM_STEP_ID",
                                         "DL_COMM_KEY" };
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        h = hash (h, getenv (names[i]));
    return h;
}

static void find_own_name (char *buf, size_t size)
{
    const char *name = getenv ("SLURMD_NODENAME");

    if (name && *name)
        snprintf (buf, size, "%s", name);
    else if (gethostname (buf, size) < 0)
        snprintf (buf, size, "this host");
    buf[size - 1] = '\0';
}

static int find_place (struct boot *b,
                       const struct slurmdl_comm_options *o,
                       struct slurmdl_error *err)
{
    struct boot_place *p = &b->place;

    p->rank = o->rank;
    p->size = o->size;
    p->listener = -1;
    if (o->size == 0)
        find_ranks (p);
    p->timeout = find_timeout (o);
    p->key = find_key ();
    find_own_name (p->own, sizeof (p->own));
    if (p->size < 1 || p->rank < 0 || p->rank >= p->size) {
        errno = EINVAL;
        return errorf (err, "there is no rank %ld of %ld", p->rank, p->size);
    }
    if (p->size == 1)
        return 0;
    find_layout (b);
    return find_address (o, p, err);
}

static int meet (struct boot *b, struct slurmdl_error *err)
{
    b->name = b->place.size == 1 ? "one" : "tcp";
    return b->place.size > 1 ? tree_open (&b->tree, &b->place, err) : 0;
}

static struct boot *create (struct slurmdl_error *err)
{
    struct boot *b = calloc (1, sizeof (*b));

    if (!b)
        errorf (err, "%s", strerror (errno));
    return b;
}

static void destroy (struct boot *b)
{
    int saved = errno;

    if (b)
        free (b->layout);
    free (b);
    errno = saved;
}

struct boot *boot_open (const struct slurmdl_comm_options *o,
                        struct slurmdl_error *err)
{
    static const struct slurmdl_comm_options none;
    struct boot *b = create (err);

    if (b && find_place (b, o ? o : &none, err) == 0 && meet (b, err) == 0)
        return b;
    destroy (b);
    return NULL;
}

struct boot *boot_open_place (const struct boot_place *p,
                              struct slurmdl_error *err)
{
    struct boot *b = create (err);

    if (b) {
        b->place = *p;
        if (meet (b, err) == 0)
            return b;
    }
    destroy (b);
    return NULL;
}

void boot_close (struct boot *b)
{
    if (!b)
        return;
    if (b->place.size > 1)
        tree_close (&b->tree);
    destroy (b);
}

long boot_rank (const struct boot *b)
{
    return b->place.rank;
}

long boot_size (const struct boot *b)
{
    return b->place.size;
}

double boot_timeout (const struct boot *b)
{
    return b->place.timeout;
}

const char *boot_name (const struct boot *b)
{
    return b->name;
}

int boot_allgather (struct boot *b,
                    const void *mine,
                    size_t bytes,
                    void *all,
                    struct slurmdl_error *err)
{
    if (bytes > BYTES_MAX) {
        errno = EMSGSIZE;
        return errorf (err, "%zu bytes are more than %d", bytes, BYTES_MAX);
    }
    if (b->place.size > 1)
        return tree_allgather (&b->tree, mine, bytes, all, err);
    memcpy (all, mine, bytes);
    return 0;
}
