/* SPDX-License-Identifier: Apache-2.0 */
/* --dl: set the environment of a task, as the user, before its program starts.
 */
#include "spank/hooks.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "runtime/network/exported.h"
#include "runtime/network/reach.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/slurmconf.h"
#include "runtime/rank/task.h"
#include "spank/context.h"

enum { NAME = 256, LIST = 64 * 1024 };

struct node_search {
    int (*emit) (void *arg, const char *node, const char *to);
    void *arg;
    int rv;
};

/* ---- slurm.conf ---- */

/* Addresses, each with its NUL. */
struct texts {
    char *text;
    size_t used, size;
};

static int add_text (void *arg, const char *text)
{
    struct texts *t = arg;
    size_t n = strlen (text) + 1;

    if (t->used + n > t->size) {
        size_t size = 2 * t->size + n;
        char *more = realloc (t->text, size);
        if (!more)
            return -1;
        t->text = more;
        t->size = size;
    }
    memcpy (t->text + t->used, text, n);
    t->used += n;
    return 0;
}

/* NodeName=n[1-4] NodeAddr=10.0.0.[1-4]: one line for several nodes.  A single
 * address applies to all of them.
 */
struct pairs {
    struct node_search *s;
    struct texts to;
    size_t at;
};

static int emit_pair (void *arg, const char *node)
{
    struct pairs *p = arg;
    const char *to = p->to.text + p->at;
    size_t next = p->at + strlen (to) + 1;

    p->s->rv = p->s->emit (p->s->arg, node, to);
    if (next < p->to.used)
        p->at = next;
    return p->s->rv;
}

static int read_node (void *arg, const char *line)
{
    struct node_search *s = arg;
    char *name = malloc (2 * LIST);
    char *to = name ? name + LIST : NULL;
    struct pairs p = { .s = s };

    if (name && slurmconf_value (line, "NodeName", name, LIST) && strcasecmp (name, "DEFAULT")
        && (slurmconf_value (line, "NodeAddr", to, LIST)
            || slurmconf_value (line, "NodeHostname", to, LIST))
        && layout_each_host (to, add_text, &p.to) == 0)
        layout_each_host (name, emit_pair, &p);
    free (p.to.text);
    free (name);
    return s->rv;
}

static void read_conf (struct node_search *s, spank_t sp)
{
    char chosen[PATH_MAX];
    const char *path;

    variable_text (sp, "SLURM_CONF", chosen, sizeof (chosen));
    if ((path = slurmconf_path (chosen)))
        slurmconf_each (path, read_node, s);
}

/* ---- SLURM_NODE_ALIASES ---- */

/* Parse "ec0:1.2.3.4:host,ec1:[fe::1]:host", for cloud nodes. */
static void read_aliases (struct node_search *s, const char *list)
{
    while (*list && s->rv == 0) {
        size_t len = strcspn (list, ",");
        char node[NAME], to[NAME];
        const char *colon = memchr (list, ':', len);
        if (colon && (size_t)(colon - list) < NAME && len < NAME) {
            const char *from = colon + 1 + (colon[1] == '[');
            snprintf (node, NAME, "%.*s", (int)(colon - list), list);
            snprintf (to, NAME, "%.*s", (int)strcspn (from, colon[1] == '[' ? "]" : ":,"), from);
            s->rv = s->emit (s->arg, node, to);
        }
        list += len + (list[len] == ',');
    }
}

/* Call 'emit' with the NodeName of each node that has an address (NodeAddr, or else
 * NodeHostname) in SLURM_NODE_ALIASES or slurm.conf, until it returns nonzero.
 * Read the files as the user, and never ask slurmctld.
 */
static void nodeaddr_each (spank_t sp, int (*emit) (void *arg, const char *node, const char *to),
                           void *arg)
{
    struct node_search s = { emit, arg, 0 };
    char *aliases = malloc (LIST);

    if (aliases && variable_text (sp, "SLURM_NODE_ALIASES", aliases, LIST) == 0)
        read_aliases (&s, aliases);
    free (aliases);
    if (s.rv == 0)
        read_conf (&s, sp);
}

enum { EPHEMERAL = 32768, PEERS = 3, ADDRESS = 256 };

/* ---- the nodes of the step ---- */

/* What Slurm knows about the nodes; read only if a name leads to no other machine. */
struct nodes {
    const struct rank_layout *l;
    char (*to)[ADDRESS]; /* address of each node; "": unknown */
    long next;           /* next index to try, because the lists usually have the same order */
};

static int take_address (void *arg, const char *node, const char *to)
{
    struct nodes *n = arg;

    for (long k = 0; k < n->l->nodes; k++) {
        long i = (n->next + k) % n->l->nodes;
        if (strcmp (n->l->names + n->l->name[i], node))
            continue;
        if (!*n->to[i])
            snprintf (n->to[i], ADDRESS, "%s", to);
        n->next = i + 1;
        break;
    }
    return 0;
}

static void read_task_nodes (spank_t sp, struct task *t, struct nodes *n)
{
    n->l = t->facts.layout;
    n->to = n->l ? calloc ((size_t)n->l->nodes, ADDRESS) : NULL;
    if (n->to)
        nodeaddr_each (sp, take_address, n);
}

static bool is_own (const struct reach_address *a)
{
    char interface[64];

    return reach_interface (a, interface, sizeof (interface)) == 0;
}

/* Several slurmd run on one machine if slurm.conf gives each node an address of
 * this machine.  What a resolver returns for a name proves nothing.
 */
static bool is_single_machine (const struct nodes *n)
{
    struct reach_address a;

    for (long i = 0; i < n->l->nodes; i++)
        if (!*n->to[i]
            || ((i == 0 || strcmp (n->to[i], n->to[i - 1]))
                && (reach_resolve (n->to[i], &a) == REACH_UNKNOWN || !is_own (&a))))
            return false;
    return true;
}

/* Replace the names of all nodes with their addresses. */
static void rename_nodes (struct task *t, const struct nodes *n)
{
    struct rank_layout *l = &t->layout;

    for (long i = 0; i < l->nodes; i++) {
        size_t len = strlen (n->to[i]) + 1;
        if (len == 1 || l->used + len > sizeof (l->names))
            continue;
        l->name[i] = (uint32_t)l->used;
        memcpy (l->names + l->used, n->to[i], len);
        l->used += len;
    }
}

/* ---- the master, and the route to it ---- */

static long master_node (const struct task *t)
{
    return t->facts.layout ? t->layout.node_of[t->master_rank] : 0;
}

static const char *node_name (const struct task *t, long node)
{
    return t->layout.names + t->layout.name[node];
}

/* Find an address of 'node' by name or from Slurm.  An address of this machine does
 * not count unless the step is known to use several.
 */
static bool find_node (const struct task *t, const struct nodes *n, long node,
                       struct reach_address *to)
{
    const char *name = n->to && *n->to[node] ? n->to[node] : node_name (t, node);

    return reach_resolve (name, to) == REACH_FOUND && (n->to || !is_own (to));
}

/* Find another node, starting with the next one. */
static bool find_peer (const struct task *t, const struct nodes *n, struct reach_address *to)
{
    long nodes = t->facts.nodes;

    for (long k = 1; k < nodes && k <= PEERS; k++)
        if (find_node (t, n, (t->facts.node + k) % nodes, to) && !is_own (to))
            return true;
    return false;
}

static void set_way (struct task *t, const struct reach_address *master,
                     const struct reach_address *own)
{
    struct rank_facts *f = &t->facts;

    reach_interface (own, f->interface, sizeof (f->interface));
    reach_figures (master, f->address, sizeof (f->address));
    reach_figures (own, f->own_address, sizeof (f->own_address));
}

/* A name may lead to an address that only this machine has, such as that of a container bridge. */
static bool is_local_address (const struct reach_address *a, const struct reach_address *b)
{
    char first[64], second[64];

    return reach_interface (a, first, sizeof (first)) == 0
           && reach_interface (b, second, sizeof (second)) == 0 && !strcmp (first, second);
}

/* On the master's node: find the interface towards another node.  Here the node's
 * own name may resolve to a loopback address, because Debian's installer and
 * cloud-init write it that way.
 */
static bool set_master_here (struct task *t, const struct nodes *n)
{
    struct rank_facts *f = &t->facts;
    struct reach_address peer, own, named;
    bool known = reach_resolve (f->master, &named) == REACH_FOUND && is_own (&named);

    if (find_peer (t, n, &peer)) {
        if (reach_source (&peer, &own) < 0)
            return false;
    } else if (!n->to) {
        return false;
    } else if (known) {
        own = named;
    } else if (!find_node (t, n, f->node, &own) || !is_own (&own)) {
        return false;
    }
    set_way (t, known && is_local_address (&named, &own) ? &named : &own, &own);
    if (!known)
        reach_figures (&own, f->master, sizeof (f->master));
    return true;
}

static bool set_master_there (struct task *t, const struct nodes *n)
{
    struct rank_facts *f = &t->facts;
    struct reach_address to, own;
    long node = master_node (t);

    if (!find_node (t, n, node, &to) || reach_source (&to, &own) < 0)
        return false;
    set_way (t, &to, &own);
    if (n->to)
        reach_figures (&to, f->master, sizeof (f->master));
    return true;
}

static bool set_master (struct task *t, const struct nodes *n)
{
    return master_node (t) == t->facts.node ? set_master_here (t, n) : set_master_there (t, n);
}

/* Whether node names are host names.  If they are, a name without an address is a
 * mistake that the user wants to know about.
 */
static bool names_are_hosts (const struct task *t)
{
    char host[ADDRESS] = "";

    gethostname (host, sizeof (host) - 1);
    return reach_same_name (host, t->facts.own);
}

/* Report what was found or what is missing, in one line per node. */
static void report_name (const struct task *t, const char *name, const char *instead)
{
    char host[ADDRESS];

    if (t->facts.local_rank != 0 || !option_is_given (PLUGIN_FRAMEWORK))
        return;
    snprintf (host, sizeof (host), "%s", t->facts.own);
    if (*instead)
        plugin_complain (
            "%s cannot resolve the name %s, the node of rank %ld, to an address of another "
            "machine, and uses %s from slurm.conf instead: fix /etc/hosts or the DNS of %s",
            host, name, t->master_rank, instead, host);
    else
        plugin_complain ("%s found no address of %s, the node of rank %ld, that other machines can "
                         "reach, so ranks on %s cannot connect: fix /etc/hosts or the DNS of %s, "
                         "or set NodeAddr in slurm.conf",
                         host, name, t->master_rank, host, host);
}

static void set_unknown (struct task *t, const char *name)
{
    snprintf (t->facts.unknown, sizeof (t->facts.unknown),
              "the master is not set: found no address of %.60s that other nodes can reach: fix "
              "/etc/hosts or the DNS, set NodeAddr in slurm.conf, or export MASTER_ADDR",
              name);
    *t->facts.master = '\0';
}

/* Find the route if the layout, and with it every other node, is unknown. */
static void find_way (struct task *t)
{
    struct reach_address to, own;

    if (reach_resolve (t->facts.master, &to) == REACH_FOUND && reach_source (&to, &own) == 0)
        set_way (t, &to, &own);
}

/* Try names first, which is enough on most sites. */
static void find_master (spank_t sp, struct task *t)
{
    struct nodes none = { 0 }, n = { 0 };
    char name[sizeof (t->facts.master)];

    if (task_master_host (t, t->facts.master, sizeof (t->facts.master)) < 0)
        return;
    snprintf (name, sizeof (name), "%s", t->facts.master);
    if (!t->facts.layout) {
        find_way (t);
        return;
    }
    if (set_master (t, &none))
        return;
    read_task_nodes (sp, t, &n);
    if (n.to && is_single_machine (&n)) {
        task_master_here (t);
    } else if (n.to && set_master (t, &n)) {
        if (names_are_hosts (t) && master_node (t) != t->facts.node)
            report_name (t, name, t->facts.master);
        rename_nodes (t, &n);
    } else if (names_are_hosts (t)) {
        report_name (t, name, "");
    } else {
        set_unknown (t, name);
    }
    free (n.to);
}

static void find_loopback (struct task *t)
{
    struct reach_address a;

    task_master_here (t);
    if (reach_resolve (t->facts.master, &a) != REACH_UNKNOWN)
        set_way (t, &a, &a);
}

static int first_ephemeral (void)
{
    int fd = open ("/proc/sys/net/ipv4/ip_local_port_range", O_RDONLY | O_CLOEXEC);
    char text[64] = "";
    ssize_t n = fd < 0 ? 0 : read (fd, text, sizeof (text) - 1);

    if (fd >= 0)
        close (fd);
    return n > 0 && atoi (text) > 0 ? atoi (text) : EPHEMERAL;
}

/* ---- */

/* Fill in t->facts.  'roles' may be NULL.  Returns 0, or -1 with the reason in t->why. */
static int place_task (spank_t sp, struct task *t, const char *roles, bool of_tasks)
{
    t->vars = variables_of (sp);
    spank_get_item (sp, S_JOB_STEPID, &t->step);
    spank_get_item (sp, S_JOB_ID, &t->job);
    if (task_read (t, roles) < 0)
        return -1;
    t->facts.job = t->job;
    t->facts.step = t->step;
    t->facts.is_master = master_node (t) == t->facts.node;
    if (t->facts.nodes > 1)
        find_master (sp, t);
    if (t->facts.nodes == 1 || t->facts.one_machine)
        find_loopback (t);
    task_ports (t, of_tasks, first_ephemeral ());
    return 0;
}

/* ---- the environment ---- */

/* Variables that must differ between ranks, between ranks of a node, or between
 * nodes, or must equal their number.
 */
enum count_of { SIZE, RANK, LOCAL, NODE };
static const struct {
    const char *name;
    enum count_of of;
} counts[] = {
    { "RANK", RANK },
    { "WORLD_SIZE", SIZE },
    { "LOCAL_RANK", LOCAL },
    { "LOCAL_WORLD_SIZE", SIZE },
    { "NODE_RANK", NODE },
    { "PET_NODE_RANK", NODE },
    { "PET_NNODES", SIZE },
    { "JAX_PROCESS_ID", RANK },
    { "JAX_NUM_PROCESSES", SIZE },
    { "HOROVOD_RANK", RANK },
    { "HOROVOD_SIZE", SIZE },
    { "HOROVOD_LOCAL_RANK", LOCAL },
    { "HOROVOD_LOCAL_SIZE", SIZE },
};

/* This task is about to listen on the port: report now what would become a timeout. */
static void test_port (const struct task *t, int port)
{
    char text[8];

    if (exported_port_is_taken (port))
        slurm_error ("dl: port %d of this node is in use; set MASTER_PORT%s", port,
                     variables_text (&t->vars, "SLURM_STEP_RESV_PORTS", text, sizeof (text)) < 0
                         ? ", or ask for MpiParams=ports=... in slurm.conf"
                         : "");
}

/* Do not test the port if the user's own replaces it. */
static void test_ports (const struct task *t, const char *framework, const char *stale)
{
    const struct rank_facts *f = &t->facts;
    bool own = exported_has (t, stale, "MASTER_PORT") || exported_has (t, stale, "PET_MASTER_PORT")
               || exported_has (t, stale, "JAX_COORDINATOR_ADDRESS");

    if (rank_environment_needs_task_ports (framework)) {
        if (f->task_port)
            test_port (t, f->task_port + (int)(f->one_machine ? f->rank : f->local_rank));
    } else if (f->rank == t->master_rank && strcmp (framework, "mpi") && !own) {
        test_port (t, strcmp (framework, "jax") ? f->port : f->port2);
    }
}

/* Report once per step, not once per rank.  The first task of a node reports what
 * only that node sees.
 */
static void report_unset (const struct task *t, const char *framework, const char *why)
{
    if (*why
        && (t->facts.rank <= 0 || ((t->contradicted || *t->facts.unknown) && !t->facts.local_rank)))
        slurm_error ("dl: --dl=%s: %s", framework, why);
}

/* The words of the user's program.  Returns 0 if Slurm does not know them. */
static int program_words (spank_t sp, char ***argv)
{
    int argc;

    return spank_get_item (sp, S_JOB_ARGV, &argc, argv) == ESPANK_SUCCESS && *argv ? argc : 0;
}

/* mpirun starts one of these on each node, and the ranks from there.  All of them
 * would inherit the rank of their node.
 */
static bool is_mpirun (spank_t sp)
{
    static const char *const programs[] = { "orted", "prted", "hydra_pmi_proxy",
                                            "hydra_bstrap_proxy" };
    const char *name;
    char **argv;

    if (program_words (sp, &argv) < 1)
        return false;
    name = strrchr (argv[0], '/') ? strrchr (argv[0], '/') + 1 : argv[0];
    for (size_t i = 0; i < sizeof (programs) / sizeof (*programs); i++)
        if (!strcmp (name, programs[i]))
            return true;
    return false;
}

/* The next word of the command, also of a text in it that a shell reads.  Returns its length, 0 at
 * the end.
 */
static size_t next_word (char **argv, int n, int *i, const char **word)
{
    static const char between[] = " \t\n'\"";

    for (;;) {
        *word += strspn (*word, between);
        if (**word)
            return strcspn (*word, between);
        if (++*i >= n || !argv[*i])
            return 0;
        *word = argv[*i];
    }
}

/* Find "--max-restarts=3", also in two words or with "_", as torchrun accepts it. */
static bool program_option (char **argv, int n, const char *name, char text[32])
{
    const char *word = n > 0 ? argv[0] : "";
    bool is_next = false;
    size_t len;

    for (int i = 0; (len = next_word (argv, n, &i, &word)) > 0; word += len) {
        size_t k = 0;
        while (!is_next && k < len && (word[k] == name[k] || (word[k] == '_' && name[k] == '-')))
            k++;
        if (is_next || (!name[k] && k < len && word[k] == '=')) {
            size_t value = is_next ? 0 : k + 1;
            snprintf (text, 32, "%.*s", (int)(len - value), word + value);
            return true;
        }
        is_next = !name[k] && k == len;
    }
    return false;
}

/* The value of a torchrun setting.  The command line wins over the variable. */
static const char *torchrun_setting (spank_t sp, const char *option, const char *name,
                                     char text[32])
{
    char **argv = NULL;
    int n = program_words (sp, &argv);

    if (!program_option (argv, n, option, text))
        variable_text (sp, name, text, 32);
    return text;
}

static bool is_elastic (spank_t sp)
{
    char text[32];

    return atoi (torchrun_setting (sp, "--max-restarts", "PET_MAX_RESTARTS", text)) > 0
           || strchr (torchrun_setting (sp, "--nnodes", "PET_NNODES", text), ':')
           || !strcmp (torchrun_setting (sp, "--rdzv-backend", "PET_RDZV_BACKEND", text), "c10d");
}

/* Keep torchrun's own default, but warn, because it fails only after minutes. */
static void report_static (spank_t sp, const struct task *t)
{
    char text[32];

    if (t->facts.elastic && t->facts.nodes > 1 && t->facts.rank == 0
        && !strcmp (torchrun_setting (sp, "--rdzv-backend", "PET_RDZV_BACKEND", text), "static"))
        plugin_complain ("torchrun with --max-restarts or --nnodes=MIN:MAX on "
                         "several nodes needs --rdzv-backend=c10d: with static, other nodes do not "
                         "learn of a restart");
}

/* --dl-bind reports hidden GPUs itself. */
static void advise_on_framework (const struct task *t, const char *framework)
{
    char line[200];

    if (!option_is_given (PLUGIN_FRAMEWORK)
        || (option_is_on (PLUGIN_BIND) && t->facts.visible_gpus == 1))
        return;
    rank_environment_advice (framework, &t->facts, line, sizeof (line));
    report_unset (t, framework, line);
}

/* The first task for which 0, the value in a batch script, is wrong.  If each rank
 * sees one GPU, GPU numbers are its own.
 */
static bool is_first_other (const struct rank_facts *f, enum count_of of)
{
    switch (of) {
    case RANK:
        return f->rank == 1;
    case LOCAL:
        return f->node == 0 && f->local_rank == 1 && f->visible_gpus != 1;
    case NODE:
        return f->node == 1 && f->local_rank == 0;
    default:
        return false;
    }
}

/* Keep values that the user exported.  One value for all ranks, such as
 * RANK=$SLURM_PROCID from a batch script, makes them wait forever.
 */
static void report_exported (spank_t sp, const struct task *t, const char *name, enum count_of of)
{
    const struct rank_variable *v = t->environment.vars;
    char own[32];

    for (int i = 0; i < t->environment.n; i++)
        if (!strcmp (v[i].name, name) && variable_text (sp, name, own, sizeof (own)) == 0
            && strcmp (own, v[i].value)
            && (t->facts.rank == 0 || (is_first_other (&t->facts, of) && !strcmp (own, "0"))))
            plugin_complain ("%s=%s was exported, and stays, but here it is %s: "
                             "unset it in the job script",
                             name, own, v[i].value);
}

/* Keep values that the user exported, but check them as strictly as ours. */
static void check_exported (const struct task *t, const char *stale)
{
    char lines[EXPORTED_LINES][EXPORTED_LINE];
    int n = exported_check (t, stale, lines);

    for (int i = 0; i < n; i++)
        plugin_complain ("%s", lines[i]);
}

static void set_task_variables (spank_t sp, struct task *t, const char *framework,
                                const char *roles)
{
    char stale[GIVEN_TEXT];
    int n;

    if (!*roles)
        roles = rank_environment_roles (framework);
    if (place_task (sp, t, roles, rank_environment_needs_task_ports (framework)) < 0) {
        char why[sizeof (t->why) + 32];
        snprintf (why, sizeof (why), "nothing is set: %s", t->why);
        report_unset (t, framework, why);
        return;
    }
    if (is_mpirun (sp)) {
        if (option_is_given (PLUGIN_FRAMEWORK))
            report_unset (t, framework,
                          "nothing is set: mpirun starts the ranks itself: start them with srun");
        return;
    }
    variable_text (sp, "DL_ENV_SET", stale, sizeof (stale));
    test_ports (t, framework, stale);
    if (!strcmp (framework, "torchrun") || !strcmp (framework, "auto")) {
        t->facts.elastic = is_elastic (sp);
        report_static (sp, t);
    }
    n = rank_environment_fill (framework, &t->facts, &t->environment);
    if (exported_way (t, stale))
        n = rank_environment_fill (framework, &t->facts, &t->environment);
    report_unset (t, framework, t->environment.why);
    advise_on_framework (t, framework);
    if (option_is_given (PLUGIN_FRAMEWORK))
        check_exported (t, stale);
    if (n > 0)
        task_set (t, n);
    if (option_is_given (PLUGIN_FRAMEWORK))
        for (size_t i = 0; i < sizeof (counts) / sizeof (*counts); i++)
            report_exported (sp, t, counts[i].name, counts[i].of);
}

bool task_has_ranks (spank_t sp)
{
    char text[32];

    for (size_t i = 0; i < sizeof (counts) / sizeof (*counts); i++)
        if (variable_text (sp, counts[i].name, text, sizeof (text)) == 0)
            return true;
    return false;
}

/* The chief leads, or worker 0 if there is none, as in Kubeflow's TFJob. */
static enum task_part task_part_of (const struct task *t, const char *framework)
{
    const struct rank_roles *roles = t->facts.roles;
    long index, first;
    enum role role;

    if (strcmp (framework, "tf") || t->environment.n <= 0 || !roles
        || roles_count (roles, ROLE_PS, NULL) + roles_count (roles, ROLE_SERVER, NULL) == 0)
        return TASK_BY_ITSELF;
    role = roles_of (roles, t->facts.rank, &index);
    if (roles_count (roles, ROLE_CHIEF, &first) == 0
        && roles_count (roles, ROLE_MASTER, &first) == 0)
        return role == ROLE_WORKER && index == 0 ? TASK_LEADS : TASK_SERVES;
    return t->facts.rank == first ? TASK_LEADS : TASK_SERVES;
}

enum task_part task_environment (spank_t sp, const char *framework, const char *roles)
{
    struct task *t = calloc (1, sizeof (*t));
    enum task_part part;

    if (!t) {
        slurm_error ("dl: --dl=%s: nothing is set: out of memory", framework);
        return TASK_BY_ITSELF;
    }
    set_task_variables (sp, t, framework, roles);
    part = task_part_of (t, framework);
    if (*t->order)
        spank_unsetenv (sp, ORDER_VARIABLE);
    free (t);
    return part;
}
