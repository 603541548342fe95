/* SPDX-License-Identifier: Apache-2.0 */
/* Flow files and the log of a run, whose entries get correct checksums. */
#include <sys/stat.h>
#include <xxhash.h>

#include "launcher/config/diagnostics.h"
#include "launcher/flow/run.h"
#include "launcher/sys/strings.h"
#include "tests/fuzz/fuzz.h"

enum { TASKS_MAX = 3 };

static void look_at (const struct flow_scope *c)
{
    struct slurmdl_error err = { "" };
    char **argv = NULL, **variables = NULL;
    char path[PATH_MAX];
    bool holds;

    flow_task_state (c->r, c->s, c->task);
    if (flow_command (c, &argv, &variables, &err) < 0 || flow_condition (c, &holds, &err) < 0)
        fuzz_failed (&err);
    for (size_t i = 0; i < c->s->noutputs; i++)
        if (flow_output_path (c, &c->s->outputs[i], path, &err) < 0)
            fuzz_failed (&err);
    json_decref (flow_take_values (c, &err));
    strings_free (argv);
    strings_free (variables);
}

static void look_at_tasks (const struct flow_run *r, const struct flow_step *s)
{
    char folder[PATH_MAX];
    long width = flow_width (r, s);

    flow_is_done (r, s, NULL);
    json_decref (conditions_json (flow_conditions (r, s)));
    for (long i = 0; i < width && i < TASKS_MAX; i++) {
        flow_path (folder, r, s, i, "a", (long)flow_task (r, s, i)->n);
        look_at (&(struct flow_scope){ .r = r,
                                       .s = s,
                                       .task = i,
                                       .attempt = 1,
                                       .folder = folder,
                                       .outcome = "failed",
                                       .failed = "a b" });
    }
}

/* Create the programs that the corpus names, because flow_read() checks that they exist. */
static void put_programs (void)
{
    static const char tune[] = "name = \"tune\"; entrypoint = \"sh prepare.sh {lr} {data}\";\n"
                               "searcher = { metric = \"loss\"; max_trials = 4; };\n"
                               "hyperparameters = { data = 0;"
                               " lr = { type = \"log\"; minval = -3; maxval = 0.0; }; };\n";
    static bool done;

    if (!done) {
        fuzz_file ("prepare.sh", "", 0);
        fuzz_file ("work.py", "", 0);
        fuzz_file ("tune.conf", tune, strlen (tune));
    }
    done = true;
}

static void put_file (const char *path, const void *data, size_t size)
{
    FILE *f = fopen (path, "w");

    if (!f)
        abort ();
    fwrite (data, 1, size, f);
    if (strstr (path, "/log/000000/"))
        fprintf (f, "{\"xxh64\": \"%016llx\"}\n", (unsigned long long)XXH64 (data, size, 0));
    fclose (f);
}

/* The input is a flow file, or a folder with "== flow.conf" and the files of a run. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    bool is_run = size > 3 && !memcmp (data, "== ", 3);
    char *given[] = { (char *)"n=[1, \"two\"]", NULL };
    struct slurmdl_error err = { "" };
    struct flow_run r = { .flow = NULL };
    struct problems p;
    char path[PATH_MAX];

    problems_open (&p);
    put_programs ();
    snprintf (r.dir, sizeof (r.dir), "%s",
              is_run ? fuzz_files ("run", data, size, put_file) : fuzz_path ("run"));
    snprintf (path, sizeof (path), "%.4000s/flow.conf", r.dir);
    r.flow = is_run ? flow_read (path, "/", NULL, NULL, &p)
                    : flow_read (fuzz_file ("one.conf", data, size), NULL,
                                 size && *data == '#' ? given : NULL, NULL, &p);
    problems_close (&p);
    if (!r.flow && p.count == 0)
        abort ();
    mkdir (r.dir, 0777);
    if (r.flow && flow_history_open (&r, &err) && flow_sync (&r, &err) < 0)
        fuzz_failed (&err);
    for (size_t i = 0; r.history && i < r.flow->n; i++)
        look_at_tasks (&r, &r.flow->steps[r.flow->order[i]]);
    fuzz_refused = !r.flow;
    flow_history_close (r.history);
    flow_free (r.flow);
    free (p.text);
    return 0;
}
