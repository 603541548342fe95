/* SPDX-License-Identifier: Apache-2.0 */
/* dl gc: remove checkpoints that the experiment's policy does not keep. */
#include <stdio.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/experiment.h"
#include "launcher/config/worker_settings.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/temporary_folder.h"
#include "launcher/worker/worker.h"

/* clang-format off */
static const char *const outcomes[][2] = {
    [GC_KEPT]     = { NULL,               NULL },
    [GC_DELETED]  = { "deleted",          "would delete" },
    [GC_LEFTOVER] = { "deleted",          "would delete" },
    [GC_DAMAGED]  = { "damaged, stays",   "damaged, would stay" },
};
/* clang-format on */

static void print_report (const struct gc_report *r, bool dry)
{
    int64_t bytes[2] = { 0 };
    size_t files[2] = { 0 };

    for (size_t i = 0; i < r->n; i++) {
        const struct gc_file *f = &r->files[i];
        bool gone = f->outcome == GC_DELETED || f->outcome == GC_LEFTOVER;
        files[gone]++;
        bytes[gone] += f->bytes;
        if (outcomes[f->outcome][dry])
            printf ("%s %s (%lld bytes)\n", outcomes[f->outcome][dry], f->path,
                    (long long)f->bytes);
    }
    printf ("%s %zu files, %lld bytes; %zu files, %lld bytes stay\n", outcomes[GC_DELETED][dry],
            files[true], (long long)bytes[true], files[false], (long long)bytes[false]);
}

/* Without checkpoint_policy.files, dl gc removes no files that the trials saved
 * themselves.
 */
static void print_superseded (const struct sweep *s)
{
    static char *const all[] = { "*", NULL };
    struct trainer_files list;
    const struct trainer_file *largest = NULL;
    int64_t bytes = 0;
    size_t n = 0;

    if (!s->exp->checkpoints->files && trainer_files_mark (s, all, &list) == 0) {
        for (size_t i = 0; i < list.n; i++) {
            const struct trainer_file *f = &list.files[i];
            if (f->kept)
                continue;
            n++;
            bytes += f->bytes;
            if (!largest || f->bytes > largest->bytes)
                largest = f;
        }
        if (n)
            printf ("%zu files that trials saved, %lld bytes, are superseded by those of later "
                    "attempts, the largest is %s; to let 'dl gc' remove them, set "
                    "checkpoint_policy.files, a list of patterns, in %s/experiment.conf\n",
                    n, (long long)bytes, largest->below, s->dir);
        trainer_files_free (&list);
    }
}

int cmd_gc (const struct command_line *line)
{
    const struct gc_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct gc_report report;
    struct sweep *s;
    long workers;
    int rv = open_experiment (line, line->args[0], &s);

    if (rv)
        return rv;
    workers = opt->dry_run ? 0 : peer_count (s->dir, 2 * (double)s->exp->worker->heartbeat, &err);
    if (workers < 0) {
        rv = fail (&err);
        sweep_close (s);
        return rv;
    }
    if (workers > 0) {
        complain ("%s: workers are running and may save checkpoints; run 'dl pause' first", s->dir);
        sweep_close (s);
        return EXIT_BUSY;
    }
    if (!opt->dry_run)
        scratch_clean ();
    if (gc_run (s, opt->dry_run, &report, &err) < 0)
        rv = fail (&err);
    print_report (&report, opt->dry_run);
    print_superseded (s);
    gc_report_free (&report);
    sweep_close (s);
    return rv;
}
