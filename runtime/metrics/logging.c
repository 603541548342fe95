/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a run.  Only rank 0 has a file; elsewhere nothing is done. */
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/metrics/metrics.h"
#include "runtime/run/run.h"

/* What a rank that does not write logs to. */
static struct slurmdl_metric nowhere;

struct slurmdl_metric *slurmdl_metric (struct slurmdl *run, const char *name)
{
    return run->metrics ? metrics_name (run->metrics, name) : &nowhere;
}

int slurmdl_log (struct slurmdl *run, const char *name, int64_t step, double value)
{
    return run->metrics ? slurmdl_metrics_log (run->metrics, name, step, value) : 0;
}

int slurmdl_epoch (struct slurmdl *run, double epoch)
{
    return run->metrics ? metrics_epoch (run->metrics, epoch) : 0;
}

int slurmdl_event (struct slurmdl *run, const char *kind, const char *json)
{
    return run->metrics ? metrics_event (run->metrics, kind, NO_STEP, json) : 0;
}

/* 'row' is where the rows that are logged from now on begin: those before it
 * with a higher step are superseded.
 */
void metrics_resumed (struct slurmdl_metrics *m, int64_t step)
{
    char json[80];

    if (!m)
        return;
    snprintf (json, sizeof (json), "{\"step\": %lld, \"row\": %lu}", (long long)step,
              ring_count (&m->ring) + 1);
    metrics_event (m, "resumed", step, json);
}

int64_t slurmdl_lost (const struct slurmdl *run)
{
    return run->metrics ? metrics_lost (run->metrics) : 0;
}

int slurmdl_trouble (struct slurmdl *run, struct slurmdl_error *err)
{
    error_clear (err);
    return run->metrics ? metrics_trouble (run->metrics, err) : 0;
}

int slurmdl_flush (struct slurmdl *run, struct slurmdl_error *err)
{
    error_clear (err);
    return run->metrics ? slurmdl_metrics_flush (run->metrics, err) : 0;
}
