/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that each framework reads. */
#include "runtime/rank/rank_environment.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- write variables ---- */

/* A value under construction.  If it does not fit, it is left out and e->why says so. */
struct value {
    struct rank_environment *e;
    const char *name;
    size_t start;
    bool cut;
};

static struct value value_begin (struct rank_environment *e, const char *name)
{
    return (struct value){ e, name, e->used, false };
}

__attribute__ ((format (printf, 2, 3))) static void value_put (struct value *v, const char *fmt,
                                                               ...)
{
    struct rank_environment *e = v->e;
    size_t limit = v->start + RANK_VALUE_MAX;
    size_t room;
    va_list ap;
    int n;

    if (limit > sizeof (e->text))
        limit = sizeof (e->text);
    if (v->cut || e->used >= limit) {
        v->cut = true;
        return;
    }
    room = limit - e->used;
    va_start (ap, fmt);
    n = vsnprintf (e->text + e->used, room, fmt, ap);
    va_end (ap);
    if (n < 0 || (size_t)n >= room)
        v->cut = true;
    else
        e->used += (size_t)n;
}

static void value_end (struct value *v)
{
    struct rank_environment *e = v->e;

    if (v->cut || e->used >= sizeof (e->text) || e->n == RANK_VARIABLES_MAX) {
        e->used = v->start;
        snprintf (e->why, sizeof (e->why),
                  "%s is not set: its list of hosts is longer than %d bytes", v->name,
                  RANK_VALUE_MAX);
        return;
    }
    e->text[e->used++] = '\0';
    e->vars[e->n++] = (struct rank_variable){ v->name, e->text + v->start };
}

/* An empty text means unknown: do not set the variable. */
static void env_text (struct rank_environment *e, const char *name, const char *t)
{
    struct value v = value_begin (e, name);

    if (!*t)
        return;
    value_put (&v, "%s", t);
    value_end (&v);
}

static void env_number (struct rank_environment *e, const char *name, long n)
{
    struct value v = value_begin (e, name);

    value_put (&v, "%ld", n);
    value_end (&v);
}

static void env_endpoint (struct rank_environment *e, const char *name, const char *host, int port)
{
    struct value v = value_begin (e, name);

    if (!*host)
        return;
    value_put (&v, strchr (host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    value_end (&v);
}

static void env_why (struct rank_environment *e, const char *why)
{
    if (!*e->why)
        snprintf (e->why, sizeof (e->why), "%s", why);
}

/* ---- what the frameworks read ---- */

static const char self[] = "127.0.0.1";

static const char *fact_host (const struct rank_facts *f, long rank)
{
    return f->one_machine || f->nodes == 1 ? self : layout_host (f->layout, rank);
}

static long fact_port (const struct rank_facts *f, long rank)
{
    return f->task_port + (f->one_machine ? rank : f->layout->local_of[rank]);
}

static void put_rank (struct value *v, const struct rank_facts *f, long rank)
{
    value_put (v, "%s:%ld", fact_host (f, rank), fact_port (f, rank));
}

static void put_rank_addresses (struct value *v, const struct rank_facts *f, long first, long count,
                                const char *quote)
{
    for (long r = first; r < first + count; r++) {
        value_put (v, "%s%s", r > first ? "," : "", quote);
        put_rank (v, f, r);
        value_put (v, "%s", quote);
    }
}

static bool has_lists (const struct rank_facts *f, struct rank_environment *e)
{
    if (!f->layout)
        env_why (e, "nothing is set: Slurm does not say which rank is on which node");
    else if (!f->task_port)
        env_why (e, "nothing is set: there is no free port for each task: ask for "
                    "MpiParams=ports=... in slurm.conf");
    return f->layout && f->task_port;
}

static const char *tf_type (enum role role)
{
    return role_names[role == ROLE_SERVER ? ROLE_PS : role];
}

static bool is_server (enum role role)
{
    return role == ROLE_PS || role == ROLE_SERVER;
}

static long count_servers (const struct rank_roles *r, long *first)
{
    long n = roles_count (r, ROLE_SERVER, first);

    return n ? n : roles_count (r, ROLE_PS, first);
}

static void fill_tf (const struct rank_facts *f, struct rank_environment *e)
{
    struct value v = value_begin (e, "TF_CONFIG");
    const char *comma = "";
    long first = 0;
    long index;
    enum role role;

    if (!has_lists (f, e))
        return;
    value_put (&v, "{\"cluster\": {");
    for (int i = 0; i < f->roles->n; first += f->roles->row[i++].count) {
        role = f->roles->row[i].role;
        if (role == ROLE_SCHEDULER || role == ROLE_EVALUATOR)
            continue; /* the evaluator is not part of the training */
        value_put (&v, "%s\"%s\": [", comma, tf_type (role));
        put_rank_addresses (&v, f, first, f->roles->row[i].count, "\"");
        value_put (&v, "]");
        comma = ", ";
    }
    role = roles_of (f->roles, f->rank, &index);
    value_put (&v, "}, \"task\": {\"type\": \"%s\", \"index\": %ld}, \"rpc_layer\": \"grpc\"}",
               tf_type (role), index);
    value_end (&v);
    /* TensorFlow starts as many threads as there are CPUs, and a worker with a
     * single thread waits for itself.
     */
    if (f->one_cpu && count_servers (f->roles, &first) > 0)
        env_text (e, "TF_NUM_INTEROP_THREADS", "2");
}

static void fill_dmlc (const struct rank_facts *f, struct rank_environment *e, long servers,
                       long workers)
{
    long index;
    enum role role = roles_of (f->roles, f->rank, &index);

    env_text (e, "DMLC_ROLE", is_server (role) ? "server" : role_names[role]);
    env_text (e, "DMLC_PS_ROOT_URI", f->address);
    env_number (e, "DMLC_PS_ROOT_PORT", f->port);
    env_number (e, "DMLC_NUM_WORKER", workers);
    env_number (e, "DMLC_NUM_SERVER", servers);
    if (role == ROLE_WORKER)
        env_number (e, "DMLC_WORKER_ID", index);
    env_text (e, "DMLC_NODE_HOST", f->own_address);
    env_text (e, "DMLC_INTERFACE", f->interface);
}

static void fill_ps (const struct rank_facts *f, struct rank_environment *e)
{
    long workers = roles_count (f->roles, ROLE_WORKER, NULL);
    long servers = count_servers (f->roles, NULL);
    long schedulers = roles_count (f->roles, ROLE_SCHEDULER, NULL);

    if (!workers || !servers || schedulers != 1 || workers + servers + 1 != f->size) {
        env_why (e, "nothing is set: ps has the roles scheduler:1, server and worker");
        return;
    }
    if (!*f->address) {
        env_why (e, "nothing is set: the address of the scheduler's node is not known");
        return;
    }
    fill_dmlc (f, e, servers, workers);
}

static void add_ranks (const struct rank_facts *f, struct rank_environment *e, const char *name,
                       long first, long count)
{
    struct value v = value_begin (e, name);

    put_rank_addresses (&v, f, first, count, "");
    value_end (&v);
}

static void fill_paddle_ps (const struct rank_facts *f, struct rank_environment *e)
{
    long first_server = 0;
    long first_worker = 0;
    long servers = count_servers (f->roles, &first_server);
    long workers = roles_count (f->roles, ROLE_WORKER, &first_worker);
    long index;
    bool server = is_server (roles_of (f->roles, f->rank, &index));

    if (servers + workers != f->size) {
        env_why (e, "nothing is set: paddle has the roles worker, or ps and worker");
        return;
    }
    env_text (e, "TRAINING_ROLE", server ? "PSERVER" : "TRAINER");
    add_ranks (f, e, "PADDLE_PSERVERS_IP_PORT_LIST", first_server, servers);
    add_ranks (f, e, "PADDLE_TRAINER_ENDPOINTS", first_worker, workers);
    env_number (e, "PADDLE_TRAINERS_NUM", workers);
    if (!server)
        env_number (e, "PADDLE_TRAINER_ID", index);
    env_text (e, "POD_IP", fact_host (f, f->rank)); /* the same address as in the lists */
    env_number (e, "PADDLE_PORT", fact_port (f, f->rank));
}

static void fill_paddle (const struct rank_facts *f, struct rank_environment *e)
{
    struct value v;

    if (!has_lists (f, e))
        return;
    if (roles_count (f->roles, ROLE_WORKER, NULL) != f->size) {
        fill_paddle_ps (f, e);
        return;
    }
    env_endpoint (e, "PADDLE_MASTER", *f->address ? f->address : f->master, f->port);
    env_number (e, "PADDLE_GLOBAL_SIZE", f->size);
    env_number (e, "PADDLE_LOCAL_SIZE", f->local_size);
    env_number (e, "PADDLE_GLOBAL_RANK", f->rank);
    env_number (e, "PADDLE_LOCAL_RANK", f->local_rank);
    env_number (e, "PADDLE_NNODES", f->nodes);
    add_ranks (f, e, "PADDLE_TRAINER_ENDPOINTS", 0, f->size);
    v = value_begin (e, "PADDLE_CURRENT_ENDPOINT");
    put_rank (&v, f, f->rank);
    value_end (&v);
    env_number (e, "PADDLE_TRAINER_ID", f->rank);
    env_number (e, "PADDLE_TRAINERS_NUM", f->size);
    env_number (e, "PADDLE_RANK_IN_NODE", f->local_rank);
    if (f->visible_gpus > 0)
        env_number (e, "FLAGS_selected_gpus", f->visible_gpus == 1 ? 0 : f->local_rank);
}

static void fill_off (const struct rank_facts *f, struct rank_environment *e)
{
    (void)f;
    (void)e;
}

static void fill_master (const struct rank_facts *f, struct rank_environment *e)
{
    if (!*f->master) {
        env_why (e, *f->unknown ? f->unknown
                                : "the master is not set: Slurm does not say which node has rank 0 "
                                  "with --distribution=arbitrary on more than two nodes");
        return;
    }
    env_text (e, "MASTER_ADDR", f->master);
    env_number (e, "MASTER_PORT", f->port);
    env_text (e, "GLOO_SOCKET_IFNAME", f->interface);
}

static void fill_torch (const struct rank_facts *f, struct rank_environment *e)
{
    env_number (e, "RANK", f->rank);
    env_number (e, "WORLD_SIZE", f->size);
    env_number (e, "LOCAL_RANK", f->local_rank);
    env_number (e, "LOCAL_WORLD_SIZE", f->local_size);
    env_number (e, "NODE_RANK", f->node);
    env_number (e, "GROUP_RANK", f->node);
    env_number (e, "GROUP_WORLD_SIZE", f->nodes);
    fill_master (f, e);
}

/* Lightning expects the same number of tasks on each node. */
static void fill_lightning (const struct rank_facts *f, struct rank_environment *e)
{
    fill_torch (f, e);
    if ((f->layout ? f->layout->most : f->local_size) * f->nodes == f->size)
        env_number (e, "SLURM_NTASKS_PER_NODE", f->local_size);
    else
        env_why (e, "SLURM_NTASKS_PER_NODE is not set: Lightning needs as many tasks "
                    "on each node (--ntasks-per-node)");
}

static void fill_static (const struct rank_facts *f, struct rank_environment *e)
{
    env_text (e, "PET_RDZV_BACKEND", "static");
    env_number (e, "PET_NNODES", f->nodes);
    env_number (e, "PET_NODE_RANK", f->node);
    if (f->gpus > 0)
        env_number (e, "PET_NPROC_PER_NODE", f->gpus);
    env_text (e, "PET_MASTER_ADDR", f->master);
    env_number (e, "PET_MASTER_PORT", f->port);
}

/* With a static rendezvous, no other node would hear of a restart.  Set who is the
 * host, because torchrun would compare names.
 */
static void fill_c10d (const struct rank_facts *f, struct rank_environment *e)
{
    struct value v;

    env_text (e, "PET_RDZV_BACKEND", "c10d");
    env_endpoint (e, "PET_RDZV_ENDPOINT", f->master, f->port);
    env_text (e, "PET_RDZV_CONF", f->is_master ? "is_host=1" : "is_host=0");
    v = value_begin (e, "PET_RDZV_ID");
    value_put (&v, "%u.%u", f->job, f->step);
    value_end (&v);
    env_text (e, "PET_LOCAL_ADDR", f->own_address);
    env_number (e, "PET_NNODES", f->nodes);
    if (f->gpus > 0)
        env_number (e, "PET_NPROC_PER_NODE", f->gpus);
}

/* The static rendezvous keeps Slurm's order of nodes; c10d does not. */
static void fill_pet (const struct rank_facts *f, struct rank_environment *e)
{
    (f->elastic ? fill_c10d : fill_static) (f, e);
}

static void fill_torchrun (const struct rank_facts *f, struct rank_environment *e)
{
    if (f->size != f->nodes) {
        env_why (e, "nothing is set: torchrun starts the ranks of a node itself: use one task per "
                    "node (--ntasks-per-node=1)");
        return;
    }
    if (!*f->master) {
        fill_master (f, e);
        return;
    }
    fill_pet (f, e);
    env_text (e, "GLOO_SOCKET_IFNAME", f->interface);
}

/* JAX uses device SLURM_LOCALID in each task.  That is wrong if a task sees only
 * its own device, and too few if there are several per task.  Divide devices that
 * all tasks of a node see in order.
 */
static void fill_jax_devices (const struct rank_facts *f, struct rank_environment *e)
{
    struct value v = value_begin (e, "JAX_LOCAL_DEVICE_IDS");
    bool own = f->own_gpus || f->local_size == 1 || f->visible_gpus == 1;
    long n = own ? f->visible_gpus : f->visible_gpus / f->local_size;
    long first = own ? 0 : f->local_rank * n;

    if (n < 1 || (n == 1 && !own))
        return;
    for (long i = 0; i < n; i++)
        value_put (&v, "%s%ld", i ? "," : "", first + i);
    value_end (&v);
}

static void fill_coordinator (const struct rank_facts *f, struct rank_environment *e, int port)
{
    env_endpoint (e, "JAX_COORDINATOR_ADDRESS", f->master, port);
    env_number (e, "JAX_COORDINATOR_PORT", port);
    env_number (e, "JAX_NUM_PROCESSES", f->size);
    env_number (e, "JAX_PROCESS_ID", f->rank);
    fill_jax_devices (f, e);
}

static void fill_jax (const struct rank_facts *f, struct rank_environment *e)
{
    if (!*f->master)
        fill_master (f, e);
    else
        fill_coordinator (f, e, f->port2);
}

/* Set only variables that no program takes as a command to wait for others: not
 * TF_CONFIG, DMLC_ROLE or HOROVOD_RANK.  A task that is alone stays alone.
 */
static void fill_auto (const struct rank_facts *f, struct rank_environment *e)
{
    if (*f->master && f->size == f->nodes)
        fill_pet (f, e);
    if (f->size == 1)
        return;
    fill_torch (f, e);
    if (*f->master)
        fill_coordinator (f, e, f->port2);
}

static void fill_horovod (const struct rank_facts *f, struct rank_environment *e)
{
    long before = 0;
    long cross;

    if (!f->layout || !*f->master) {
        env_why (e, "nothing is set: Slurm does not say which rank is on which node");
        return;
    }
    cross = layout_cross (f->layout, f->local_rank, f->node, &before);
    env_text (e, "HOROVOD_HOSTNAME", f->own);
    env_number (e, "HOROVOD_RANK", f->rank);
    env_number (e, "HOROVOD_SIZE", f->size);
    env_number (e, "HOROVOD_LOCAL_RANK", f->local_rank);
    env_number (e, "HOROVOD_LOCAL_SIZE", f->local_size);
    env_number (e, "HOROVOD_CROSS_RANK", before);
    env_number (e, "HOROVOD_CROSS_SIZE", cross);
    env_text (e, "HOROVOD_GLOO_RENDEZVOUS_ADDR", *f->address ? f->address : f->master);
    env_number (e, "HOROVOD_GLOO_RENDEZVOUS_PORT", f->port);
    env_text (e, "HOROVOD_GLOO_IFACE", f->interface);
    env_text (e, "HOROVOD_CONTROLLER", "gloo");
    env_text (e, "HOROVOD_CPU_OPERATIONS", "gloo");
}

/* MPI finds its ranks through PMI.  These variables are for programs that read them
 * before MPI_Init: PMIx has no name that programs look for, and PMI-2 has no local
 * rank.
 */
static void fill_mpi (const struct rank_facts *f, struct rank_environment *e)
{
    if (f->pmi == RANK_PMI_NONE) {
        env_why (e, "nothing is set: this step has no PMI, and each task would be rank "
                    "0 of 1: use srun --mpi=pmix (or pmi2, as the MPI was built)");
        return;
    }
    if (f->pmi == RANK_PMI_X) {
        env_number (e, "OMPI_COMM_WORLD_RANK", f->rank);
        env_number (e, "OMPI_COMM_WORLD_SIZE", f->size);
        env_number (e, "OMPI_COMM_WORLD_LOCAL_RANK", f->local_rank);
        env_number (e, "OMPI_COMM_WORLD_LOCAL_SIZE", f->local_size);
        env_number (e, "OMPI_COMM_WORLD_NODE_RANK", f->local_rank);
        return;
    }
    env_number (e, "MPI_LOCALRANKID", f->local_rank);
    env_number (e, "MPI_LOCALNRANKS", f->local_size);
    env_number (e, "MV2_COMM_WORLD_RANK", f->rank);
    env_number (e, "MV2_COMM_WORLD_SIZE", f->size);
    env_number (e, "MV2_COMM_WORLD_LOCAL_RANK", f->local_rank);
    env_number (e, "MV2_COMM_WORLD_LOCAL_SIZE", f->local_size);
}

/* clang-format off */
static const struct framework {
    const char *name;
    void (*fill) (const struct rank_facts *f, struct rank_environment *e);
    const char *roles; /* default roles; NULL: the framework has none */
    bool task_ports;
} frameworks[] = {
    { "torch",      fill_torch,     NULL,                            false },
    { "torchrun",   fill_torchrun,  NULL,                            false },
    { "lightning",  fill_lightning, NULL,                            false },
    { "deepspeed",  fill_torch,     NULL,                            false },
    { "accelerate", fill_torch,     NULL,                            false },
    { "tf",         fill_tf,        "worker:*",                      true },
    { "jax",        fill_jax,       NULL,                            false },
    { "horovod",    fill_horovod,   NULL,                            false },
    { "ps",         fill_ps,        "scheduler:1,server:1,worker:*", false },
    { "paddle",     fill_paddle,    "worker:*",                      true },
    { "mpi",        fill_mpi,       NULL,                            false },
    { "auto",       fill_auto,      NULL,                            false },
    { "off",        fill_off,       NULL,                            false },
};

const char *const rank_environment_frameworks[] = {
    "torch", "torchrun", "lightning", "deepspeed", "accelerate", "tf", "jax",
    "horovod", "ps", "paddle", "mpi", "auto", "off", NULL };
/* clang-format on */
enum { FRAMEWORKS = sizeof (frameworks) / sizeof (*frameworks) };

static const struct framework *find_framework (const char *name)
{
    for (int i = 0; i < FRAMEWORKS; i++)
        if (!strcmp (frameworks[i].name, name))
            return &frameworks[i];
    errno = EINVAL;
    return NULL;
}

bool rank_environment_needs_task_ports (const char *framework)
{
    const struct framework *w = find_framework (framework);

    return w && w->task_ports;
}

const char *rank_environment_roles (const char *framework)
{
    const struct framework *w = find_framework (framework);

    return w ? w->roles : NULL;
}

long rank_environment_master_rank (const struct rank_roles *roles)
{
    long first = 0;

    if (roles)
        roles_count (roles, ROLE_SCHEDULER, &first);
    return first;
}

/* Set the roles for any framework, because the user's script may read them too. */
static void fill_roles (const struct rank_facts *f, struct rank_environment *e)
{
    long index;
    enum role role;

    if (!f->roles)
        return;
    role = roles_of (f->roles, f->rank, &index);
    env_text (e, "DL_ROLE", role_names[role]);
    env_number (e, "DL_ROLE_INDEX", index);
}

int rank_environment_fill (const char *framework, const struct rank_facts *facts,
                           struct rank_environment *e)
{
    const struct framework *w = find_framework (framework);

    e->n = 0;
    e->used = 0;
    e->why[0] = '\0';
    if (!w)
        return -1;
    if (w->roles && !facts->roles) {
        env_why (e, "nothing is set: the ranks have no roles");
        return 0;
    }
    w->fill (facts, e);
    if (e->n > 0)
        fill_roles (facts, e);
    return e->n;
}

/* Each task gets its own GPUs, or as many as the others. */
static void advise_jax (const struct rank_facts *f, char *buf, size_t size)
{
    long seen = f->visible_gpus, tasks = f->local_size;

    if (f->own_gpus || seen == 0 || seen % tasks == 0)
        return;
    if (seen < tasks)
        snprintf (buf, size,
                  "%ld tasks for the %ld GPU%s of a node: JAX needs one for "
                  "each; use --ntasks-per-node=%ld",
                  tasks, seen, seen > 1 ? "s" : "", seen);
    else
        snprintf (buf, size, "%ld GPUs of a node for %ld tasks: each gets %ld, and %ld idle", seen,
                  tasks, seen / tasks, seen % tasks);
}

void rank_environment_advice (const char *framework, const struct rank_facts *f, char *buf,
                              size_t size)
{
    const struct framework *w = find_framework (framework);
    long seen = f->visible_gpus;

    *buf = '\0';
    if (w && w->fill == fill_jax)
        advise_jax (f, buf, size);
    if (!w || (w->fill != fill_torch && w->fill != fill_lightning))
        return;
    if (f->size == f->nodes && seen > 1)
        snprintf (buf, size,
                  "one rank on a node for its %ld GPUs; for a rank for each "
                  "GPU use --ntasks-per-node=%ld, for torchrun --dl=torchrun",
                  seen, seen);
    else if (seen == 1 && f->local_size > 1)
        snprintf (buf, size,
                  "%ld ranks of a node see one GPU each: a program that uses LOCAL_RANK as its "
                  "device fails; use --gpus-per-node=%ld "
                  "instead of --gpus-per-task",
                  f->local_size, f->local_size);
    else if (seen > 0 && f->local_size > seen)
        snprintf (buf, size,
                  "%ld ranks for the %ld GPUs of a node: a program that uses LOCAL_RANK as its "
                  "device fails; use --ntasks-per-node=%ld",
                  f->local_size, seen, seen);
}
