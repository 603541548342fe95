/* SPDX-License-Identifier: Apache-2.0 */
/* Read NVIDIA's GPUs. */
#include "launcher/monitor/nvidia.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "launcher/sys/nvml.h"

struct device {
    struct nvml_device *handle;
    struct nvml_gpm_sample *before, *after; /* NULL: this GPU has none */
};

struct nvidia {
    struct nvml nvml;
    unsigned n;
    struct device devices[GPUS_MAX];
    struct nvml_gpm_metrics metrics;
};

/* Whether the library has function F, and it succeeds. */
#define CALL(n, f, ...)                                                        \
    ((n)->nvml.f && (n)->nvml.f (__VA_ARGS__) == NVML_SUCCESS)

static void
read_load (const struct nvidia *n, const struct device *d, struct gpu_sample *g)
{
    struct nvml_utilization u;
    struct nvml_memory m;

    if (CALL (n, utilization, d->handle, &u)) {
        g->v[GPU_BUSY] = u.gpu;
        g->v[GPU_MEMORY_BUSY] = u.memory;
    }
    if (nvml_memory (&n->nvml, d->handle, &m) == NVML_SUCCESS) {
        g->v[GPU_MEMORY] = (double)m.used;
        g->v[GPU_MEMORY_SIZE] = (double)m.total;
    }
}

static void read_physics (const struct nvidia *n,
                          const struct device *d,
                          struct gpu_sample *g)
{
    unsigned long long big;
    unsigned u;

    if (CALL (n, power, d->handle, &u))
        g->v[GPU_POWER] = u / 1e3;
    if (CALL (n, energy, d->handle, &big))
        g->v[GPU_ENERGY] = (double)big / 1e3;
    if (CALL (n, temperature, d->handle, NVML_TEMPERATURE_GPU, &u))
        g->v[GPU_TEMPERATURE] = u;
    if (CALL (n, clock, d->handle, NVML_CLOCK_SM, &u))
        g->v[GPU_CLOCK] = u;
    if (CALL (n, clock, d->handle, NVML_CLOCK_MEM, &u))
        g->v[GPU_MEMORY_CLOCK] = u;
    if (CALL (n, pcie, d->handle, NVML_PCIE_RX, &u))
        g->v[GPU_PCIE_RECEIVE] = u * 1e3;
    if (CALL (n, pcie, d->handle, NVML_PCIE_TX, &u))
        g->v[GPU_PCIE_SEND] = u * 1e3;
}

static void read_slowed (const struct nvidia *n,
                         const struct device *d,
                         struct gpu_sample *g)
{
    unsigned long long why;

    if (!CALL (n, slowed, d->handle, &why))
        return;
    g->v[GPU_HOT] = (why & (NVML_SW_THERMAL | NVML_HW_THERMAL)) != 0;
    g->v[GPU_CAPPED] = (why & (NVML_POWER_CAP | NVML_POWER_BRAKE)) != 0;
}

/* Between the reading before and this one. */
static void
read_units (struct nvidia *n, struct device *d, struct gpu_sample *g)
{
    struct nvml_gpm_metrics *m = &n->metrics;
    struct nvml_gpm_sample *older = d->before;

    if (!d->after || n->nvml.gpm_get (d->handle, d->after) != NVML_SUCCESS)
        return;
    *m = (struct nvml_gpm_metrics){
        .version = NVML_GPM_VERSION,
        .n = 2,
        .before = older,
        .after = d->after,
        .metrics = { { .id = NVML_GPM_SM }, { .id = NVML_GPM_TENSOR } },
    };
    if (n->nvml.gpm_metrics (m) == NVML_SUCCESS) {
        if (m->metrics[0].status == NVML_SUCCESS)
            g->v[GPU_SM] = m->metrics[0].value;
        if (m->metrics[1].status == NVML_SUCCESS)
            g->v[GPU_TENSOR] = m->metrics[1].value;
    }
    d->before = d->after;
    d->after = older;
}

static void read_processes (const struct nvidia *n,
                            const struct device *d,
                            int index,
                            struct gpu_readings *r)
{
    struct nvml_process list[GPU_PROCESSES_MAX];
    unsigned count = GPU_PROCESSES_MAX;

    if (!CALL (n, processes, d->handle, &count, list))
        return;
    for (unsigned i = 0; i < count && r->nprocesses < GPU_PROCESSES_MAX; i++)
        r->process[r->nprocesses++] = (struct gpu_process){
            .gpu = index,
            .pid = (pid_t)list[i].pid,
            .memory =
                list[i].memory == ULLONG_MAX ? NAN : (double)list[i].memory,
        };
}

void nvidia_read (struct nvidia *n, struct gpu_readings *r)
{
    for (unsigned i = 0; i < n->n && r->n < GPUS_MAX; i++) {
        struct device *d = &n->devices[i];
        struct gpu_sample *g = &r->gpu[r->n++];
        g->index = (int)i;
        for (int f = 0; f < GPU_FIELDS; f++)
            g->v[f] = NAN;
        read_load (n, d, g);
        read_physics (n, d, g);
        read_slowed (n, d, g);
        read_units (n, d, g);
        read_processes (n, d, g->index, r);
    }
}

static void open_units (struct nvidia *n, struct device *d)
{
    struct nvml_gpm_support s = { .version = NVML_GPM_VERSION };
    const struct nvml *v = &n->nvml;

    if (!v->gpm_alloc || !v->gpm_free || !v->gpm_get || !v->gpm_metrics
        || !CALL (n, gpm_support, d->handle, &s) || !s.supported)
        return;
    if (v->gpm_alloc (&d->before) != NVML_SUCCESS)
        return;
    if (v->gpm_get (d->handle, d->before) != NVML_SUCCESS
        || v->gpm_alloc (&d->after) != NVML_SUCCESS) {
        v->gpm_free (d->before);
        d->after = NULL;
    }
}

struct nvidia *nvidia_open (void)
{
    struct nvidia *n = calloc (1, sizeof (*n));
    unsigned count = 0;

    if (!n || nvml_open (&n->nvml, NULL) < 0) {
        free (n);
        return NULL;
    }
    if (n->nvml.count (&count) != NVML_SUCCESS)
        count = 0;
    while (n->n < count && n->n < GPUS_MAX
           && n->nvml.handle (n->n, &n->devices[n->n].handle) == NVML_SUCCESS)
        open_units (n, &n->devices[n->n++]);
    if (n->n > 0)
        return n;
    nvidia_close (n);
    return NULL;
}

void nvidia_close (struct nvidia *n)
{
    if (!n)
        return;
    for (unsigned i = 0; i < n->n; i++)
        if (n->devices[i].after) {
            n->nvml.gpm_free (n->devices[i].before);
            n->nvml.gpm_free (n->devices[i].after);
        }
    nvml_close (&n->nvml);
    free (n);
}
