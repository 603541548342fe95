/* SPDX-License-Identifier: Apache-2.0 */
/* The batch script of an array task: workers, started again if they die. */
#include "launcher/worker/batch_script.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/queries.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"

/* A worker runs as a step, because on Slurm 22.05 only steps hear of
 * preemption; but where the trials are steps of their own it is no step, for
 * Slurm would then end the srun of the trial with it (rank_proxy.c).  A worker that
 * was killed is started again; one whose time is up leaves with 75, one whose
 * machine is excluded with 76, one that needs a job of more memory with 77, one
 * that a check kept from starting with 79, one whose experiment was paused
 * because of a fault with 11.
 */
static const char text[] =
    "#!/bin/sh\n"
    "# Workers of an experiment; dl writes this file whenever it submits it.\n"
    "dl=%s\n"
    "dir=%s\n"
    "out=%s\n"
    "case $out in *\\\\*)\n"
    "    exec >>\"$out/${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID.log\" "
    "2>&1 ;;\n"
    "esac\n"
    "export DL_PIN=%s\n"
    "unset SLURM_CPU_BIND SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_LIST "
    "SLURM_CPU_BIND_VERBOSE\n"
    "DL_TIME_LEFT=\n"
    "[ \"$SLURM_JOB_END_TIME\" ] || DL_TIME_LEFT=$(squeue --noheader "
    "--format=%%L \\\n"
    "    --jobs=\"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\" 2>/dev/null)\n"
    "DL_TIME_ASKED=$(date +%%s)\n"
    "DL_FRESH=1\n"
    "export DL_TIME_LEFT DL_TIME_ASKED DL_FRESH\n"
    "unset DL_LAST_STATUS\n"
    "tries=0\n"
    "while [ $tries -lt 20 ]; do\n"
    "    %s\"$dl\" worker -- \"$dir\"\n"
    "    status=$?\n"
    "    case $status in\n"
    "    0) exit 0 ;;\n"
    "    75 | 76 | 77 | 79) exec \"$dl\" requeue -- \"$dir\" $status ;;\n"
    "    2 | 3 | 5 | 11) exit $status ;;\n"
    "    esac\n"
    "    DL_FRESH=0\n"
    "    export DL_LAST_STATUS=$status\n"
    "    tries=$((tries + 1))\n"
    "    sleep 2\n"
    "done\n"
    "exit $status\n";

/* A lane that dies must not take the others with it. */
static void worker_step (const struct experiment *e, char *buf, size_t size)
{
    *buf = '\0';
    if (!experiment_has_ranks (e))
        snprintf (buf, size,
                  "srun --nodes=1 --ntasks=%lld --cpus-per-task=%lld "
                  "--input=none --kill-on-bad-exit=0 --wait=0 \\\n        ",
                  (long long)e->lanes, (long long)e->cpus);
}

int script_write (const struct executor *x, const char *folder, struct slurmdl_error *err)
{
    char path[PATH_MAX + 8];
    char *dl = shell_word (x->dl);
    char *dir = shell_word (x->sweep->dir);
    char *out = shell_word (folder);
    char step[256];
    char *content = NULL;
    int rv;

    worker_step (x->sweep->exp, step, sizeof (step));
    snprintf (path, sizeof (path), "%s/job.sh", folder);
    rv = dl && dir && out ? asprintf (&content, text, dl, dir, out, x->sweep->pin, step) : -1;
    free (dl);
    free (dir);
    free (out);
    if (rv < 0)
        return errorf (err, "out of memory");
    /* its name changes hands at once: another dl may be submitting it */
    rv = publish_replace (path, content, strlen (content), err);
    free (content);
    return rv;
}
