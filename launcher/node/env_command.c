/* SPDX-License-Identifier: Apache-2.0 */
/* dl env: print the plugin's variables of each rank, before or in a job. */
#include "launcher/node/env_command.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/node/env_explain.h"
#include "launcher/node/env_plan.h"
#include "launcher/sys/say.h"

enum { WIDE = 60, COLUMNS = 8 };

/* ---- one rank, for env -S and the shell ---- */

static void print_quoted (const char *value)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789_.,:/+@%-";

    if (*value && !value[strspn (value, safe)]) {
        fputs (value, stdout);
        return;
    }
    putchar ('\'');
    for (; *value; value++)
        if (*value == '\'')
            fputs ("'\\''", stdout);
        else
            putchar (*value);
    putchar ('\'');
}

static bool is_known (const struct plan_rank *r, const struct env_entry *e)
{
    return e->given && e->value && !entries_find (&r->unknown, e->name);
}

static int print_rank (struct env_plan *p, long rank, struct slurmdl_error *err)
{
    struct plan_rank r;
    int rv = plan_rank (p, rank, &r, err);

    for (size_t i = 0; rv == 0 && i < r.vars.n; i++)
        if (is_known (&r, &r.vars.list[i])) {
            printf ("%s=", r.vars.list[i].name);
            print_quoted (r.vars.list[i].value);
            putchar ('\n');
        }
    for (size_t i = 0; rv == 0 && i < r.unknown.n; i++)
        plan_note (p, "%s is not known: %s", r.unknown.list[i].name, r.unknown.list[i].value);
    plan_rank_free (&r);
    return rv;
}

/* ---- the table ---- */

struct env_row {
    const char *cell[COLUMNS];
    char text[COLUMNS][64];
};

static const char *const heads[COLUMNS] = { "RANK", "NODE",  "LOCAL", "ROLE",
                                            "GPUS", "CORES", "NIC",   NULL };

static const char *value_of (const struct plan_rank *r, const char *name)
{
    const struct env_entry *e = entries_find (&r->vars, name);

    return e && e->value ? e->value : "";
}

/* Without --dl-bind: what it sees, by Slurm's numbers. */
static const char *gpus_of (const struct env_plan *p, const struct plan_rank *r, char *buf,
                            size_t size)
{
    long first = p->gpus_per_task ? r->local * p->gpus_per_task : 0;
    long count = p->gpus_per_task ? p->gpus_per_task : p->gpus;

    if (*r->gpus || count == 0)
        return r->gpus;
    snprintf (buf, size, count > 1 ? "%ld-%ld" : "%ld", first, first + count - 1);
    return buf;
}

static void fill_row (const struct env_plan *p, const struct plan_rank *r, struct env_row *row)
{
    *row = (struct env_row){ { NULL } };
    snprintf (row->text[0], sizeof (row->text[0]), "%ld", r->rank);
    snprintf (row->text[2], sizeof (row->text[2]), "%ld", r->local);
    if (*r->role)
        snprintf (row->text[3], sizeof (row->text[3]), "%s %ld", r->role, r->role_index);
    row->cell[0] = row->text[0];
    row->cell[1] = r->host;
    row->cell[2] = row->text[2];
    row->cell[3] = row->text[3];
    row->cell[4] = gpus_of (p, r, row->text[4], sizeof (row->text[4]));
    row->cell[5] = r->cpus;
    row->cell[6] = r->nic;
}

static void print_table (const struct env_plan *p, const struct plan_rank *r, long n)
{
    int width[COLUMNS] = { 0 };
    struct env_row row;

    for (long i = 0; i < n; i++) {
        fill_row (p, &r[i], &row);
        for (int c = 0; heads[c]; c++)
            if (*row.cell[c] && (int)strlen (row.cell[c]) > width[c])
                width[c] = (int)strlen (row.cell[c]);
    }
    for (long i = -1; i < n; i++) {
        const char *gap = "";
        if (i >= 0)
            fill_row (p, &r[i], &row);
        for (int c = 0; heads[c]; c++) {
            int w = (int)strlen (heads[c]);
            if (!width[c])
                continue;
            w = width[c] > w ? width[c] : w;
            printf ("%s%-*s", gap, heads[c + 1] ? w : 0,
                    i < 0          ? heads[c]
                    : *row.cell[c] ? row.cell[c]
                                   : "-");
            gap = "  ";
        }
        putchar ('\n');
    }
}

/* ---- variables ---- */

static bool same_in_all (const struct plan_rank *r, long n, const char *name)
{
    for (long i = 1; i < n; i++)
        if (strcmp (value_of (&r[0], name), value_of (&r[i], name)))
            return false;
    return true;
}

static void print_common (const struct plan_rank *r, long n)
{
    puts ("\nThe same for all ranks:");
    for (size_t i = 0; i < r[0].vars.n; i++) {
        const struct env_entry *e = &r[0].vars.list[i];
        if (is_known (&r[0], e) && same_in_all (r, n, e->name))
            printf ("  %s=%s\n", e->name, e->value);
    }
}

static void print_values (const struct plan_rank *r, long n, const char *name)
{
    int at = printf ("  %s=", name);

    for (long i = 0; i < n; i++) {
        const char *value = value_of (&r[i], name);
        const struct env_entry *e = entries_find (&r[i].vars, name);
        if (at > 2 * WIDE || strlen (value) > WIDE) {
            printf ("... (--rank=%ld)", i);
            break;
        }
        at += printf ("%s%s", !e || !e->value ? "-" : value, i + 1 < n ? " " : "");
    }
    putchar ('\n');
}

/* Names that any rank has: rank 0 may lack one (DMLC_WORKER_ID). */
static void print_differing (const struct plan_rank *r, long n)
{
    struct env_entries seen = { NULL };

    puts ("\nBy rank, in their order:");
    for (long k = 0; k < n; k++)
        for (size_t i = 0; i < r[k].vars.n; i++) {
            const struct env_entry *e = &r[k].vars.list[i];
            if (!is_known (&r[k], e) || entries_find (&seen, e->name)
                || entries_put (&seen, e->name, "") < 0)
                continue;
            if (!same_in_all (r, n, e->name))
                print_values (r, n, e->name);
        }
    entries_free (&seen);
}

static void collect_unknown (const struct plan_rank *r, long n, struct env_entries *all)
{
    for (long k = 0; k < n; k++)
        for (size_t i = 0; i < r[k].unknown.n; i++)
            entries_put (all, r[k].unknown.list[i].name, r[k].unknown.list[i].value);
}

static void print_unknown (const struct plan_rank *r, long n)
{
    struct env_entries all = { NULL };

    collect_unknown (r, n, &all);
    if (all.n)
        puts ("\nSet, but known only when the job runs:");
    for (int d = 0; d < PLAN_DOUBTS; d++) {
        const char *gap = "  ";
        bool any = false;
        for (size_t i = 0; i < all.n; i++)
            if (!strcmp (all.list[i].value, plan_doubts[d])) {
                printf ("%s%s", gap, all.list[i].name);
                gap = ", ";
                any = true;
            }
        if (any)
            printf (": %s\n", plan_doubts[d]);
    }
    entries_free (&all);
}

static void print_kept (const struct plan_rank *r)
{
    const char *head = "\nExported here, and so left as they are:";

    for (size_t i = 0; i < r->vars.n; i++)
        if (r->vars.list[i].kept) {
            if (head)
                puts (head);
            head = NULL;
            printf ("  %s=%s\n", r->vars.list[i].name, r->vars.list[i].value);
        }
}

static void print_all (struct env_plan *p, const struct plan_rank *r)
{
    long n = p->ranks;

    print_table (p, r, n);
    if (!*p->dl && !*p->bind && !*p->nccl)
        puts ("\nNo variable is set: none of --dl, --dl-bind and --dl-nccl is "
              "asked for.");
    else {
        print_common (r, n);
        if (n > 1)
            print_differing (r, n);
    }
    print_unknown (r, n);
    print_kept (r);
    if (p->notes)
        puts ("\nNotes:");
    for (int i = 0; i < p->notes; i++)
        printf ("  %s\n", p->note[i]);
}

/* ---- all ranks ---- */

static struct plan_rank *ranks_create (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = calloc ((size_t)p->ranks, sizeof (*r));
    int rv = r ? 0 : errorf (err, "out of memory");

    for (long i = 0; rv == 0 && i < p->ranks; i++)
        rv = plan_rank (p, i, &r[i], err);
    if (rv == 0)
        return r;
    for (long i = 0; r && i < p->ranks; i++)
        plan_rank_free (&r[i]);
    free (r);
    return NULL;
}

static void ranks_destroy (struct plan_rank *r, long n)
{
    for (long i = 0; i < n; i++)
        plan_rank_free (&r[i]);
    free (r);
}

static int print_plan (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = ranks_create (p, err);

    if (!r)
        return -1;
    print_all (p, r);
    ranks_destroy (r, p->ranks);
    return 0;
}

static json_t *json_of_rank (const struct plan_rank *r)
{
    json_t *v = json_pack ("{s:i, s:s, s:i, s:i, s:{}, s:{}}", "rank", (int)r->rank, "node",
                           r->host, "node_index", (int)r->node, "local_rank", (int)r->local,
                           "environment", "unknown");

    if (*r->role)
        json_object_set_new (v, "role", json_string (r->role));
    if (*r->gpus)
        json_object_set_new (v, "gpus", json_string (r->gpus));
    if (*r->cpus)
        json_object_set_new (v, "cpus", json_string (r->cpus));
    if (*r->nic)
        json_object_set_new (v, "nic", json_string (r->nic));
    for (size_t i = 0; i < r->vars.n; i++)
        if (is_known (r, &r->vars.list[i]))
            json_object_set_new (json_object_get (v, "environment"), r->vars.list[i].name,
                                 json_string (r->vars.list[i].value));
    for (size_t i = 0; i < r->unknown.n; i++)
        json_object_set_new (json_object_get (v, "unknown"), r->unknown.list[i].name,
                             json_string (r->unknown.list[i].value));
    return v;
}

static json_t *json_of_plan (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = ranks_create (p, err);
    json_t *v;

    if (!r)
        return NULL;
    v = json_pack ("{s:[], s:[]}", "ranks", "notes");
    for (long i = 0; i < p->ranks; i++)
        json_array_append_new (json_object_get (v, "ranks"), json_of_rank (&r[i]));
    for (int i = 0; i < p->notes; i++)
        json_array_append_new (json_object_get (v, "notes"), json_string (p->note[i]));
    ranks_destroy (r, p->ranks);
    return v;
}

/* ---- the command ---- */

static int print_one (struct env_plan *p, long rank, struct slurmdl_error *err)
{
    if (rank >= p->ranks) {
        errno = EINVAL;
        return errorf (err, "--rank=%ld: the step has the ranks 0 to %ld", rank, p->ranks - 1);
    }
    if (print_rank (p, rank, err) < 0)
        return -1;
    for (int i = 0; i < p->notes; i++)
        complain ("env: %s", p->note[i]);
    return 0;
}

static int print_json (struct env_plan *p, struct slurmdl_error *err)
{
    json_t *json = json_of_plan (p, err);

    if (!json)
        return -1;
    json_dumpf (json, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (json);
    return 0;
}

int cmd_env (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct env_plan *p = NULL;
    int rv;

    if (!st->words)
        return explain_print (st->json);
    if ((rv = plan_create (&p, st->words, &err)) == 0)
        rv = st->rank >= 0 ? print_one (p, (long)st->rank, &err)
             : st->json    ? print_json (p, &err)
                           : print_plan (p, &err);
    plan_destroy (p);
    return rv < 0 ? fail (&err) : EXIT_OK;
}
