/* SPDX-License-Identifier: Apache-2.0 */
/* dl run and dl worker. */
#include <stdlib.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/start.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/resources.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/messages.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/storage/hdf5_table.h"

int cmd_run (const struct command_line *line)
{
    const struct run_options *opt = line->options;
    const struct edit edit = { .sets = opt->start.sets };
    struct experiment *e;
    int rv = refuse_experiment (line, line->args[0]) ? EXIT_USAGE
                                                     : read_experiment (line->args[0], &edit, &e);

    if (rv == 0)
        rv = gpus_to_nodes (&e, line->args[0], &edit, &opt->start);
    return rv ? rv : run_new (e, line, &opt->start);
}

static int worker_status (enum worker_end end, bool is_task, const struct slurmdl_error *err)
{
    int rv;

    switch (end) {
    case WORKER_DONE:
        return EXIT_OK;
    case WORKER_FAULT: /* exit with an error so that Slurm does not mark the job as completed */
        return EXIT_FAULT;
    case WORKER_PREEMPTED:
        if (is_task) /* 'dl run --local' waits for a worker with a slot, so do not wait here */
            sleep (PREEMPT_WAIT);
        /* fall through */
    case WORKER_PARKED:
        return EXIT_PARKED;
    case WORKER_EXCLUDED:
        return EXIT_EXCLUDED;
    case WORKER_SMALL:
        return EXIT_SMALL;
    case WORKER_ERROR:
        break;
    }
    /* these two are final; other errors may go away on a later attempt */
    rv = fail (err);
    return rv == EXIT_DAMAGED || rv == EXIT_USAGE ? rv : EXIT_IO;
}

/* Whether the program would run beside this worker in a batch script or, worse, on the login node
 * under salloc, where the options of the plugin have no effect: dl job starts its worker there.
 */
static bool needs_step (const struct experiment *e, const struct worker_options *opt)
{
    return e->job->is_given && !opt->slot && slurm_in_allocation () && !experiment_has_ranks (e);
}

int cmd_worker (const struct command_line *line)
{
    const struct worker_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct worker_place place;
    enum worker_end end;
    struct sweep *s;
    char slot[64];
    struct worker_exit lost;
    struct scratch own = { .lock = -1 };
    int rv;

    /* load HDF5 now: on a node without it, the worker must end before it takes a trial
     */
    hdf5 ();
    if ((rv = open_to_run (line, opt->trust, line->args[0], &s)))
        return rv;
    s->exp->resources->is_step = needs_step (s->exp, opt);
    if ((rv = code_enter (s, &own)) == EXIT_OK) {
        place_find (&place, s->exp, opt->slot, slot, sizeof (slot));
        worker_exit_read ("", &lost);
        place.lost = &lost;
        end = worker_run (s, &place, &err);
        rv = worker_status (end, !opt->slot && getenv ("SLURM_JOB_ID"), &err);
    }
    scratch_remove (&own);
    sweep_close (s);
    return rv;
}
