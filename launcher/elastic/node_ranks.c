/* SPDX-License-Identifier: Apache-2.0 */
/* dl elastic: start the ranks of a node, as a step or as a process. */
#include "launcher/elastic/node_ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/job_variables.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
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

/* srun for one node.  It ends when a rank of the node does, and the others of
 * the node with it; that other nodes are lost does not end it.
 */
static char **step_words (const struct elastic *e, long i)
{
    static const char *const step[] = { "srun",
                                        "--overlap",
                                        "--no-kill",
                                        "--input=none",
                                        "--kill-on-bad-exit=1",
                                        "--nodes=1",
                                        NULL };
    const char *cpus = getenv ("SLURM_CPUS_PER_TASK");
    char **list = NULL;
    int bad = strings_add_all (&list, (char *const *)step);

    bad |= strings_addf (&list, "--nodelist=%s", e->units[i].node);
    bad |= strings_addf (&list, "--ntasks=%ld", e->ranks);
    bad |= strings_addf (&list, "--ntasks-per-node=%ld", e->ranks);
    if (cpus)
        bad |= strings_addf (&list, "--cpus-per-task=%s", cpus);
    bad |= strings_add_all (&list, e->st->sets);
    for (int k = 0; k < e->st->nargs; k++)
        bad |= strings_add (&list, e->st->args[k]);
    return bad ? NULL : list;
}

struct unit_start {
    const struct elastic *e;
    long i;
};

static void prepare (const void *arg)
{
    const struct unit_start *u = arg;

    if (!u->e->local)
        variables_drop (variable_is_of_step);
    set_environment (u->e, u->i);
}

/* A terminal's signals are for dl, which ends the groups in order. */
int unit_start (struct elastic *e, long i, struct slurmdl_error *err)
{
    struct elastic_unit *u = &e->units[i];
    char **words = e->local ? e->st->args : step_words (e, i);

    if (!words)
        return errorf (err, "out of memory");
    u->tries++;
    u->begun = monotonic ();
    u->asked = 0;
    u->pid = subprocess_spawn (
        &(struct spawn){ .argv = words,
                         .io = { 0, 1, 2 },
                         .new_group = true,
                         .death_signal = e->local ? SIGKILL : SIGTERM,
                         .prepare = prepare,
                         .arg = &(struct unit_start){ e, i } });
    if (!e->local)
        strings_free (words);
    if (u->pid > 0)
        return 0;
    u->pid = 0;
    return errorf (err, "cannot start a process: %s", strerror (errno));
}
