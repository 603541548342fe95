/* SPDX-License-Identifier: Apache-2.0 */
/* dl env: print the plugin's variables of each rank, before or in a job. */
#include "launcher/env/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/queries.h"
#include "launcher/env/explain.h"
#include "launcher/env/needs.h"
#include "launcher/env/view.h"
#include "launcher/session/open.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/step.h"

struct env_printer {
    const struct settings *st;
    struct slurmdl_error *err;
    uint32_t steps;
    const struct ask *hand; /* options of the command line */
    json_t *json;           /* NULL: print tables */
};

static int
print_step (struct env_printer *v, struct env_plan *p, const char *where)
{
    const struct settings *st = v->st;
    json_t *json;

    if (st->rank >= 0) {
        if (st->rank >= p->ranks) {
            errno = EINVAL;
            return errorf (v->err,
                           "--rank=%lld: the step has the ranks 0 to %ld",
                           (long long)st->rank,
                           p->ranks - 1);
        }
        if (plan_print_rank (p, (long)st->rank, v->err) < 0)
            return -1;
        for (int i = 0; i < p->notes; i++)
            complain ("env: %s", p->note[i]);
        return 0;
    }
    if (!v->json) {
        if (where)
            printf ("%s%s: step %u\n", v->steps ? "\n" : "", where, v->steps);
        return plan_print (p, v->err);
    }
    if (!(json = plan_json (p, v->err)))
        return -1;
    if (where)
        json_object_set_new (json, "where", json_string (where));
    return json_array_append_new (v->json, json);
}

/* What is given by hand goes before what the file says. */
static int plan_step (void *arg, const struct ask_step *s)
{
    struct env_printer *v = arg;
    struct env_plan *p = NULL;
    struct ask a;
    int rv = -1;

    if (ask_copy (&a, s->ask) < 0 || ask_merge (&a, v->hand) < 0)
        errorf (v->err, "out of memory");
    else if (plan_create (&p, &a, v->steps, v->err) == 0) {
        if (s->unread)
            plan_note (p,
                       "%s: '%.60s' is known only to the shell, and left out",
                       s->where,
                       s->unread);
        if (s->no_srun)
            plan_note (p,
                       "%s: no line begins with srun, and only what srun "
                       "starts gets the variables",
                       s->where);
        rv = print_step (v, p, s->where);
    }
    v->steps++;
    plan_destroy (p);
    ask_free (&a);
    return rv;
}

static int read_hand (struct ask *a, char **words, struct slurmdl_error *err)
{
    for (char **w = words; w && *w; w++) {
        char *two[] = { *w, NULL };
        if (ask_take (a, two, NULL, err) < 0)
            return -1;
    }
    return 0;
}

/* The step of a trial's ranks, or of the worker that trains it itself. */
static int add_experiment (struct ask *a,
                           const struct experiment *e,
                           const char *path,
                           struct slurmdl_error *err)
{
    char text[4][64];
    char *one[] = { text[0], text[1], text[2], text[3], NULL };
    char **step = NULL;
    int rv = 0;

    snprintf (text[0], 64, "--nodes=1");
    snprintf (text[1], 64, "--ntasks=%lld", (long long)e->lanes);
    snprintf (text[2], 64, "--cpus-per-task=%lld", (long long)e->cpus);
    snprintf (text[3],
              64,
              "--gpus-per-node=%lld",
              (long long)(e->node_gpus * e->lanes));
    if (!e->node_gpus)
        one[3] = NULL;
    for (char **w = e->sbatch_args; rv >= 0 && w && *w; w++)
        rv = ask_take (a, w, path, err);
    for (char **w = one; rv >= 0 && *w; w++)
        rv = ask_take (a, w, path, err);
    if (rv >= 0 && e->framework) {
        snprintf (text[0], 64, "--dl=%.50s", e->framework);
        rv = ask_take (a, one, path, err);
    }
    if (rv >= 0 && experiment_has_ranks (e)
        && step_command (e, true, &step) == 0)
        for (char **w = step + 1; rv >= 0 && *w && **w == '-' && (*w)[2]; w++)
            rv = ask_take (a, w, path, err);
    strings_free (step);
    return rv < 0 ? -1 : 0;
}

static int experiment_step (struct env_printer *v, const char *path)
{
    struct experiment *e = NULL;
    struct ask a = { { NULL }, { NULL } };
    struct ask_step s = { .ask = &a, .where = path };
    int status = read_experiment (path, NULL, &e);
    int rv;

    if (status)
        return status;
    rv = add_experiment (&a, e, path, v->err);
    if (rv == 0)
        rv = plan_step (v, &s);
    ask_free (&a);
    experiment_destroy (e);
    return rv < 0 ? fail (v->err) : EXIT_OK;
}

static bool is_experiment (const char *path)
{
    size_t n = strlen (path);

    return n > 5 && !strcmp (path + n - 5, ".conf");
}

static int read_file (struct env_printer *v, const char *path)
{
    if (is_experiment (path))
        return experiment_step (v, path);
    return ask_script (path, plan_step, v, v->err) < 0 ? fail (v->err)
                                                       : EXIT_OK;
}

static int by_hand (struct env_printer *v)
{
    const struct ask none = { { NULL }, { NULL } };
    const struct ask_step s = { .ask = &none };

    return plan_step (v, &s) < 0 ? fail (v->err) : EXIT_OK;
}

int cmd_env (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct ask hand = { { NULL }, { NULL } };
    struct env_printer v = { .st = st, .err = &err, .hand = &hand };
    int rv;

    if (st->nargs == 0 && !st->words)
        return explain_print (st->json);
    if (st->json)
        v.json = json_array ();
    if (read_hand (&hand, st->words, &err) < 0)
        rv = fail (&err);
    else
        rv = st->nargs ? read_file (&v, st->args[0]) : by_hand (&v);
    if (v.json && rv == EXIT_OK) {
        json_dumpf (v.json, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
        putchar ('\n');
    }
    json_decref (v.json);
    ask_free (&hand);
    return rv;
}
