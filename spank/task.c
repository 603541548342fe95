/* SPDX-License-Identifier: Apache-2.0 */
/* In a task, as the user, just before its program: set its environment. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/word.h"
#include "spank/context.h"
#include "spank/place.h"

enum { TEXT = 4096 };

/* ---- the port ---- */

/* This task is about to listen there: tell now what would else be a time-out.
 */
static void test_port (int port)
{
    struct sockaddr_in any = { .sin_family = AF_INET,
                               .sin_port = htons ((uint16_t)port) };
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    if (bind (fd, (struct sockaddr *)&any, sizeof (any)) < 0
        && errno == EADDRINUSE)
        slurm_error ("dl: port %d of this node is in use; set MASTER_PORT, or "
                     "ask for MpiParams=ports=... in slurm.conf",
                     port);
    close (fd);
}

static void test_ports (const struct task *t, const char *framework)
{
    const struct rank_facts *f = &t->facts;

    if (rankenv_needs_task_ports (framework)) {
        if (f->task_port)
            test_port (f->task_port
                       + (int)(f->one_machine ? f->rank : f->local_rank));
    } else if (f->rank == t->master_rank && strcmp (framework, "mpi")) {
        test_port (strcmp (framework, "jax") ? f->port : f->port2);
    }
}

/* ---- setting ---- */

/* However long its value is. */
static bool is_set (spank_t sp, const char *name)
{
    char text[8];

    return spank_getenv (sp, name, text, sizeof (text)) != ESPANK_ENV_NOEXIST;
}

/* What the user exported stays; what this plugin set in an outer step (a job
 * that was submitted from a step inherits it) does not.
 */
static void set_variables (struct task *t, const struct rank_variable *v, int n)
{
    char stale[TEXT] = "";
    char ours[TEXT] = "";
    char step[32];
    size_t used = 0;

    if (spank_getenv (t->sp, "DL_ENV_SET", stale, sizeof (stale))
        != ESPANK_SUCCESS)
        *stale = '\0';
    for (int i = 0; i < n; i++) {
        if (is_set (t->sp, v[i].name) && !word_listed (stale, v[i].name))
            continue;
        spank_setenv (t->sp, v[i].name, v[i].value, 1);
        used += (size_t)snprintf (ours + used,
                                  sizeof (ours) - used,
                                  "%s%s",
                                  used ? "," : "",
                                  v[i].name);
    }
    snprintf (step, sizeof (step), "%u.%u", t->job, t->step);
    spank_setenv (t->sp, "DL_ENV_STEP", step, 1);
    spank_setenv (t->sp, "DL_ENV_SET", ours, 1);
}

/* One line for the step, not one for each rank; what only this node sees is
 * told by its first task.
 */
static void tell (const struct task *t, const char *framework, const char *why)
{
    if (*why
        && (t->facts.rank <= 0 || (t->contradicted && !t->facts.local_rank)))
        slurm_error ("dl: --dl=%s: %s", framework, why);
}

static void set_all (struct task *t, const char *framework, const char *roles)
{
    int n;

    if (!*roles)
        roles = rankenv_roles (framework);
    if (task_place (t, roles, rankenv_needs_task_ports (framework)) < 0) {
        char why[sizeof (t->why) + 32];
        snprintf (why, sizeof (why), "nothing is set: %s", t->why);
        tell (t, framework, why);
        return;
    }
    test_ports (t, framework);
    n = rankenv_fill (framework, &t->facts, &t->environment);
    tell (t, framework, t->environment.why);
    if (n > 0)
        set_variables (t, t->environment.vars, n);
}

void task_environment (spank_t sp, const char *framework, const char *roles)
{
    struct task *t = calloc (1, sizeof (*t));

    if (!t) {
        slurm_error ("dl: --dl=%s: nothing is set: out of memory", framework);
        return;
    }
    t->sp = sp;
    set_all (t, framework, roles);
    free (t);
}
