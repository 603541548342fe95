/* SPDX-License-Identifier: Apache-2.0 */
/* What the frameworks read whose variables list all ranks, or their roles. */
#include "runtime/rank/values.h"

#include <string.h>

static const char self[] = "127.0.0.1";

static const char *host_of (const struct rank_facts *f, long rank)
{
    return f->one_machine || f->nodes == 1 ? self : layout_host (f->layout, rank);
}

static long port_of (const struct rank_facts *f, long rank)
{
    return f->task_port + (f->one_machine ? rank : f->layout->local_of[rank]);
}

static void put_rank (struct value *v, const struct rank_facts *f, long rank)
{
    value_put (v, "%s:%ld", host_of (f, rank), port_of (f, rank));
}

static void put_ranks (struct value *v, const struct rank_facts *f, long first, long count,
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

void fill_tf (const struct rank_facts *f, struct rank_environment *e)
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
            continue; /* the evaluator is beside the training */
        value_put (&v, "%s\"%s\": [", comma, tf_type (role));
        put_ranks (&v, f, first, f->roles->row[i].count, "\"");
        value_put (&v, "]");
        comma = ", ";
    }
    role = roles_of (f->roles, f->rank, &index);
    value_put (&v,
               "}, \"task\": {\"type\": \"%s\", \"index\": %ld}, "
               "\"rpc_layer\": \"grpc\"}",
               tf_type (role), index);
    value_end (&v);
    /* TensorFlow takes as many threads as there are CPUs, and a worker with one
     * waits for itself
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

void fill_ps (const struct rank_facts *f, struct rank_environment *e)
{
    long workers = roles_count (f->roles, ROLE_WORKER, NULL);
    long servers = count_servers (f->roles, NULL);
    long schedulers = roles_count (f->roles, ROLE_SCHEDULER, NULL);

    if (!workers || !servers || schedulers != 1 || workers + servers + 1 != f->size) {
        env_why (e, "nothing is set: ps has the roles scheduler:1, server and "
                    "worker");
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

    put_ranks (&v, f, first, count, "");
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
    env_text (e, "POD_IP", host_of (f, f->rank)); /* as in the lists */
    env_number (e, "PADDLE_PORT", port_of (f, f->rank));
}

void fill_paddle (const struct rank_facts *f, struct rank_environment *e)
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
