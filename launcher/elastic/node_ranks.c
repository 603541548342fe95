/* SPDX-License-Identifier: Apache-2.0 */
/* dl elastic: start the ranks of a node, as a step or as a process. */
#include "launcher/elastic/elastic.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "launcher/sys/job_variables.h"
#include "launcher/sys/strings.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

void unit_name (const struct elastic *e, long i, char *buf, size_t size)
{
    snprintf (buf, size, "%ld.%ld", i, e->units[i].tries);
}

static void put_number (const char *name, long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%ld", value);
    setenv (name, text, 1);
}

static void set_environment (const struct elastic *e, long i)
{
    char name[32];

    unit_name (e, i, name, sizeof (name));
    setenv ("DL_ELASTIC_DIR", e->dir, 1);
    setenv ("DL_ELASTIC_UNIT", name, 1);
    put_number ("DL_ELASTIC_MIN", e->min * e->ranks);
    put_number ("DL_ELASTIC_MAX", e->max * e->ranks);
    put_number ("DL_ELASTIC_START", e->wanted * e->ranks);
}

static int add (char ***list, const char *name, const char *value)
{
    char text[512];

    snprintf (text, sizeof (text), "%s%s", name, value);
    return strings_add (list, text, strlen (text));
}

/* srun for one node.  It ends when a rank of the node does, and the others of
 * the node with it; that other nodes are lost does not end it.
 */
static char **step_words (const struct elastic *e, long i)
{
    const char *cpus = getenv ("SLURM_CPUS_PER_TASK");
    char ranks[32];
    char **list = NULL;
    int bad = 0;

    snprintf (ranks, sizeof (ranks), "%ld", e->ranks);
    bad |= add (&list, "srun", "");
    bad |= add (&list, "--overlap", "");
    bad |= add (&list, "--no-kill", "");
    bad |= add (&list, "--input=none", "");
    bad |= add (&list, "--kill-on-bad-exit=1", "");
    bad |= add (&list, "--nodes=1", "");
    bad |= add (&list, "--nodelist=", e->units[i].node);
    bad |= add (&list, "--ntasks=", ranks);
    bad |= add (&list, "--ntasks-per-node=", ranks);
    if (cpus)
        bad |= add (&list, "--cpus-per-task=", cpus);
    for (char **s = e->st->sets; s && *s; s++)
        bad |= add (&list, *s, "");
    for (int k = 0; k < e->st->nargs; k++)
        bad |= strings_add (&list, e->st->args[k], strlen (e->st->args[k]));
    return bad ? NULL : list;
}

static void drop_step (void)
{
    char **to = environ;

    for (char **v = environ; *v; v++)
        if (!variable_is_of_step (*v) || !strncmp (*v, "SLURM_CONF=", 11))
            *to++ = *v;
    *to = NULL;
}

static void child (const struct elastic *e, long i)
{
    char **words = e->local ? e->st->args : step_words (e, i);
    sigset_t none;

    /* a terminal's signals are for dl, which ends them in order */
    setpgid (0, 0);
    prctl (PR_SET_PDEATHSIG, e->local ? SIGKILL : SIGTERM);
    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    if (!e->local)
        drop_step ();
    set_environment (e, i);
    if (words)
        execvp (words[0], words);
    dprintf (2,
             "dl: %s: cannot run: %s\n",
             words ? words[0] : "elastic",
             strerror (errno));
    _exit (errno == ENOENT ? 127 : 126);
}

int unit_start (struct elastic *e, long i, struct slurmdl_error *err)
{
    struct unit *u = &e->units[i];

    u->tries++;
    u->begun = monotonic ();
    u->asked = 0;
    fflush (NULL);
    if ((u->pid = fork ()) == 0)
        child (e, i);
    if (u->pid > 0)
        return 0;
    u->pid = 0;
    return errorf (err, "cannot start a process: %s", strerror (errno));
}
