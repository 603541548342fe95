/* SPDX-License-Identifier: Apache-2.0 */
/* Make a run of a flow file: its folder, the frozen code and the script of its
 * jobs. */
#include "launcher/flow/new_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/code/store.h"
#include "launcher/flow/cache.h"
#include "launcher/flow/check_software.h"
#include "launcher/flow/code_change.h"
#include "launcher/flow/command.h"
#include "launcher/flow/jobs.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"

/* The flow file stays where it is, and so do files that steps write: the digest
 * of the code is that of the code.
 */
static void exclude_own (struct flow *f)
{
    const char *name = strrchr (f->file, '/');
    size_t n = strlen (f->base.dir);

    name = name ? name + 1 : f->file;
    strings_add (&f->base.code_exclude, name);
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->steps[i].noutputs; k++) {
            const char *path = f->steps[i].outputs[k].path;
            if (!strncmp (path, f->base.dir, n) && path[n] == '/' && !strpbrk (path, "{*?"))
                strings_add (&f->base.code_exclude, path + n + 1);
        }
}

/* All commands, to see whether one names a file of the folder. */
static void list_commands (struct flow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[i];
        const char *one[] = { s->exp.entrypoint, s->sweep };
        for (size_t k = 0; k < 2; k++)
            if (one[k])
                strings_add (&f->base.argv, one[k]);
        strings_add_all (&f->base.argv, s->exp.argv);
    }
}

static bool is_off (const struct flow *f)
{
    const char *text = getenv ("DL_FREEZE");

    return !f->base.code_freeze || (text && (!strcmp (text, "false") || !strcmp (text, "0")));
}

/* Without frozen code nobody knows what an earlier task has run. */
static int freeze (struct flow_run *r, const char *root, struct slurmdl_error *err)
{
    struct code_archive a = { .data = NULL };
    struct code_files files;
    json_t *digests = NULL;
    int rv;

    exclude_own (r->flow);
    list_commands (r->flow);
    r->flow->base.work = WORK_SHARED;
    for (size_t i = 0; i < r->flow->n; i++)
        if (r->flow->steps[i].work != WORK_SHARED && !r->flow->steps[i].sweep)
            r->flow->base.work = WORK_ATTEMPT;
    rv = code_select (&r->flow->base, root, &files, err);
    if (rv == 0 && (rv = code_archive_pack (&files, &a, err)) == 0
        && (rv = store_put (r->dir, &a, err)) == 0) {
        json_object_set_new (r->about, "code", json_string (a.digest));
        json_object_set_new (r->about, "root", json_string (files.root));
    }
    if (*files.why)
        complain ("the code is not frozen, and nothing is cached: %s", files.why);
    else if (rv >= 0 && !is_off (r->flow)
             && (digests = flow_code_digests (r->flow, &files, &a, err))) {
        json_object_set_new (r->about, "code_of", digests);
        flow_say_code_change (r, &files, &a);
    }
    code_archive_free (&a);
    code_files_free (&files);
    return rv < 0 ? -1 : 0;
}

static int write_script (const struct flow_run *r, struct slurmdl_error *err)
{
    char path[PATH_MAX + 8];

    snprintf (path, sizeof (path), "%s/job.sh", r->dir);
    return publish_if_absent (path, flow_job_script, strlen (flow_job_script), err);
}

struct flow *flow_file_read (const char *path, char *const *given, const struct settings *st)
{
    struct problems p;
    struct flow *f;
    int e;

    if (problems_open (&p) < 0)
        return NULL;
    f = flow_read (path, NULL, given, NULL, &p);
    e = errno;
    if (f && st)
        flow_find_software (f, st->local, !st->dry_run, &p);
    if (f && p.count > 0) {
        flow_free (f);
        f = NULL;
        e = EINVAL;
    }
    problems_close (&p);
    for (char *line = p.text, *end; !f && *line; line = end + 1) {
        end = line + strcspn (line, "\n");
        complain ("%.*s", (int)(end - line), line);
        if (!*end)
            break;
    }
    free (p.text);
    errno = e;
    return f;
}

int flow_make (struct flow_run *r, const struct settings *st, double every,
               struct slurmdl_error *err)
{
    json_t *given = json_array ();

    if (flow_create (r, st->dir, err) < 0)
        return -1;
    for (int i = 2; i < st->nargs; i++)
        json_array_append_new (given, json_string (st->args[i]));
    json_object_set_new (r->about, "given", given);
    if (every > 0)
        json_object_set_new (r->about, "every", json_integer ((json_int_t)every));
    if (freeze (r, st->dir, err) < 0 || write_script (r, err) < 0)
        return -1;
    return flow_commit (r, err);
}
