/* SPDX-License-Identifier: Apache-2.0 */
/* Read the GPUs of a step on this node, in a child process. */
#include "launcher/sys/gpu_readings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/nvml.h"
#include "launcher/sys/subprocess.h"
#include "runtime/host/sysfs.h"

/* ---- NVIDIA: NVML ---- */

struct device {
    struct nvml_device *handle;
    struct nvml_gpm_sample *before, *after; /* NULL if this GPU does not support GPM */
    unsigned long long used;                /* time of the newest sample of a process's use */
};

struct nvidia {
    struct nvml nvml;
    enum gpus_purpose purpose;
    unsigned n;
    struct device devices[GPUS_MAX];
    struct nvml_gpm_metrics metrics;
};

/* True if the library has function f and the call succeeds. */
#define CALL(n, f, ...) ((n)->nvml.f && (n)->nvml.f (__VA_ARGS__) == NVML_SUCCESS)

static void read_load (const struct nvidia *n, const struct device *d, struct gpu_sample *g)
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

static void read_physics (const struct nvidia *n, const struct device *d, struct gpu_sample *g)
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

static void read_throttled (const struct nvidia *n, const struct device *d, struct gpu_sample *g)
{
    unsigned long long why;

    if (!CALL (n, slowed, d->handle, &why))
        return;
    g->v[GPU_HOT] = (why & (NVML_SW_THERMAL | NVML_HW_THERMAL)) != 0;
    g->v[GPU_CAPPED] = (why & (NVML_POWER_CAP | NVML_POWER_BRAKE)) != 0;
}

/* Compute utilization between the previous sample and this one. */
static void read_units (struct nvidia *n, struct device *d, struct gpu_sample *g)
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

static void read_processes (const struct nvidia *n, const struct device *d, int index,
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
            .memory = list[i].memory == ULLONG_MAX ? NAN : (double)list[i].memory,
            .busy = NAN,
        };
}

/* ---- what slows an NVIDIA GPU down ---- */

static double nvml_number (const struct device *d, int (*f) (struct nvml_device *, unsigned *))
{
    unsigned u;

    return f && f (d->handle, &u) == NVML_SUCCESS ? u : NAN;
}

static void read_clock (const struct nvidia *n, const struct device *d, struct gpu_sample *g)
{
    unsigned long long why;
    unsigned u;

    if (CALL (n, clock, d->handle, NVML_CLOCK_SM, &u))
        g->v[GPU_CLOCK] = u;
    if (CALL (n, max_clock, d->handle, NVML_CLOCK_SM, &u))
        g->v[GPU_CLOCK_MOST] = u;
    if (CALL (n, slowed, d->handle, &why))
        g->v[GPU_SLOWED] = (double)why;
    g->v[GPU_POWER_LIMIT] = nvml_number (d, n->nvml.power_limit) / 1e3;
}

static void read_link (const struct nvidia *n, const struct device *d, struct gpu_sample *g)
{
    g->v[GPU_LANES] = nvml_number (d, n->nvml.width);
    g->v[GPU_LANES_MOST] = nvml_number (d, n->nvml.max_width);
    g->v[GPU_GENERATION] = nvml_number (d, n->nvml.generation);
    g->v[GPU_GENERATION_MOST] = nvml_number (d, n->nvml.max_generation);
}

/* The driver keeps samples of the last seconds.  It reports none of a process that did nothing. */
static void read_process_use (const struct nvidia *n, struct device *d, struct gpu_process *p,
                              int count)
{
    struct nvml_process_use use[2 * GPU_PROCESSES_MAX];
    unsigned samples = 2 * GPU_PROCESSES_MAX;
    unsigned long long since = d->used;
    int status =
        n->nvml.process_use ? n->nvml.process_use (d->handle, use, &samples, since) : NVML_LACKING;

    if (status != NVML_SUCCESS && status != NVML_NOT_FOUND)
        return;
    if (status == NVML_NOT_FOUND)
        samples = 0;
    for (unsigned i = 0; i < samples; i++)
        d->used = use[i].time > d->used ? use[i].time : d->used;
    for (int k = 0; k < count; k++) {
        unsigned long long sum = 0, of = 0;
        for (unsigned i = 0; i < samples; i++)
            if (use[i].pid == (unsigned)p[k].pid && use[i].time > since && use[i].sm <= 100) {
                sum += use[i].sm;
                of++;
            }
        p[k].busy = of > 0 ? (double)sum / (double)of : 0;
    }
}

static void read_slowness (const struct nvidia *n, struct device *d, int index,
                           struct gpu_readings *r)
{
    int before = r->nprocesses;

    read_clock (n, d, &r->gpu[r->n - 1]);
    read_link (n, d, &r->gpu[r->n - 1]);
    read_processes (n, d, index, r);
    read_process_use (n, d, &r->process[before], r->nprocesses - before);
}

/* ---- one or the other ---- */

static void read_usage (struct nvidia *n, struct device *d, int index, struct gpu_readings *r)
{
    struct gpu_sample *g = &r->gpu[r->n - 1];

    read_load (n, d, g);
    read_physics (n, d, g);
    read_throttled (n, d, g);
    read_units (n, d, g);
    read_processes (n, d, index, r);
}

/* Read those in 'which'; 0: all. */
static void nvidia_read (struct nvidia *n, uint32_t which, struct gpu_readings *r)
{
    for (unsigned i = 0; i < n->n && r->n < GPUS_MAX; i++) {
        struct gpu_sample *g = &r->gpu[r->n];
        if (which && !(which >> i & 1))
            continue;
        r->n++;
        g->index = (int)i;
        for (int f = 0; f < GPU_FIELDS; f++)
            g->v[f] = NAN;
        if (n->purpose == GPUS_SLOWNESS)
            read_slowness (n, &n->devices[i], g->index, r);
        else
            read_usage (n, &n->devices[i], g->index, r);
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

static void nvidia_close (struct nvidia *n)
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

/* Returns NULL if there are no NVIDIA GPUs. */
static struct nvidia *nvidia_open (enum gpus_purpose purpose)
{
    struct nvidia *n = xcalloc (1, sizeof (*n));
    unsigned count = 0;

    n->purpose = purpose;
    if (nvml_open (&n->nvml, NULL) < 0) {
        free (n);
        return NULL;
    }
    if (n->nvml.count (&count) != NVML_SUCCESS)
        count = 0;
    while (n->n < count && n->n < GPUS_MAX
           && n->nvml.handle (n->n, &n->devices[n->n].handle) == NVML_SUCCESS)
        if (purpose == GPUS_USAGE)
            open_units (n, &n->devices[n->n++]);
        else
            n->n++;
    if (n->n > 0)
        return n;
    nvidia_close (n);
    return NULL;
}

/* ---- AMD: sysfs ---- */

enum { CARDS = 128, VENDOR = 0x1002 };

static const struct file {
    const char *path; /* below the device */
    enum gpu_field field;
    double scale;
} files[] = {
    { "gpu_busy_percent",    GPU_BUSY,         1 },
    { "mem_busy_percent",    GPU_MEMORY_BUSY,  1 },
    { "mem_info_vram_used",  GPU_MEMORY,       1 },
    { "mem_info_vram_total", GPU_MEMORY_SIZE,  1 },
}, sensors[] = { /* below the device's hwmon */
    { "power1_input",        GPU_POWER,        1e-6 },
    { "power1_average",      GPU_POWER,        1e-6 },
    { "temp1_input",         GPU_TEMPERATURE,  1e-3 },
    { "freq1_input",         GPU_CLOCK,        1e-6 },
    { "freq2_input",         GPU_MEMORY_CLOCK, 1e-6 },
};

static void read_files (int device, const struct file *f, size_t n, struct gpu_sample *g)
{
    char text[64];
    char *end;

    for (size_t i = 0; i < n; i++) {
        double v;
        if (sysfs_line (device, f[i].path, text, sizeof (text)) < 0)
            continue;
        v = strtod (text, &end);
        if (end != text)
            g->v[f[i].field] = v * f[i].scale;
    }
}

static void read_sensors (int device, struct gpu_sample *g)
{
    char path[32];

    for (int i = 0; i < CARDS; i++) {
        snprintf (path, sizeof (path), "hwmon/hwmon%d", i);
        int fd = openat (device, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            continue;
        read_files (fd, sensors, sizeof (sensors) / sizeof (*sensors), g);
        close (fd);
        return;
    }
}

static void read_card (int device, struct gpu_readings *r)
{
    struct gpu_sample *g = &r->gpu[r->n];

    if (sysfs_number (device, "vendor", 0) != VENDOR
        || faccessat (device, "mem_info_vram_total", R_OK, 0) < 0)
        return;
    g->index = r->n++;
    for (int f = 0; f < GPU_FIELDS; f++)
        g->v[f] = NAN;
    read_files (device, files, sizeof (files) / sizeof (*files), g);
    read_sensors (device, g);
}

/* Append the AMD GPUs found in sysfs. */
static void amd_read (int sysfs, struct gpu_readings *r)
{
    char path[64];

    for (int i = 0; i < CARDS && r->n < GPUS_MAX; i++) {
        snprintf (path, sizeof (path), "class/drm/card%d/device", i);
        int fd = openat (sysfs, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            continue;
        read_card (fd, r);
        close (fd);
    }
}

/* ---- the child that reads ---- */

struct gpus {
    pid_t pid;
    int fd;
    bool asked;
    bool none;
};

enum { NUMBERS = 1024 };

/* Parse a list such as "0,2-3". */
static int parse_list (const char *text, bool *in)
{
    int n = 0;

    while (*text) {
        char *end;
        long first = strtol (text, &end, 10);
        long last = first;
        if (end == text || first < 0)
            return -1;
        if (*end == '-')
            last = strtol (end + 1, &end, 10);
        for (long i = first; i <= last && i < NUMBERS; i++, n++)
            in[i] = true;
        text = *end ? end + 1 : end;
    }
    return n;
}

/* Keep only the step's GPUs, from a list such as SLURM_STEP_GPUS "0,2-3".  If the system
 * shows no more GPUs than the list has, they are the step's.
 */
static void select_of_step (struct gpu_readings *r, const char *list)
{
    bool in[NUMBERS] = { false };
    int wanted = list ? parse_list (list, in) : 0;
    int n = 0, processes = 0;

    if (wanted <= 0 || wanted >= r->n)
        return;
    for (int i = 0; i < r->n; i++)
        if (in[r->gpu[i].index])
            r->gpu[n++] = r->gpu[i];
    for (int i = 0; i < r->nprocesses; i++)
        if (in[r->process[i].gpu])
            r->process[processes++] = r->process[i];
    r->n = n;
    r->nprocesses = processes;
}

static void answer_readings (int fd, struct nvidia *nvidia, int sysfs, uint32_t which)
{
    struct gpu_readings *r = xcalloc (1, sizeof (*r));

    if (nvidia)
        nvidia_read (nvidia, which, r);
    else if (sysfs >= 0)
        amd_read (sysfs, r);
    select_of_step (r, getenv ("SLURM_STEP_GPUS"));
    if (send (fd, r, sizeof (*r), MSG_NOSIGNAL) != (ssize_t)sizeof (*r) || r->n == 0)
        _exit (0);
    free (r);
}

static void read_gpu_samples (int fd, const char *sysfs, enum gpus_purpose purpose)
{
    struct nvidia *nvidia = nvidia_open (purpose);
    int root = purpose == GPUS_USAGE ? open (sysfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    uint32_t which;

    while (recv (fd, &which, sizeof (which), 0) == sizeof (which))
        answer_readings (fd, nvidia, root, which);
    nvidia_close (nvidia);
    _exit (0);
}

/* A child that hangs in the driver must not keep the connections of its parent open. */
struct gpus *gpus_start (const char *sysfs, enum gpus_purpose purpose)
{
    struct gpus *g = xcalloc (1, sizeof (*g));
    int pair[2];

    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        free (g);
        return NULL;
    }
    if ((g->pid = subprocess_fork (SIGKILL)) == 0) {
        /* who looks for the process that it serves by name must not find two */
        prctl (PR_SET_NAME, "dl-gpus");
        subprocess_close_inherited (pair[1]);
        read_gpu_samples (pair[1], sysfs, purpose);
    }
    close (pair[1]);
    g->fd = pair[0];
    if (g->pid > 0)
        return g;
    close (g->fd);
    free (g);
    return NULL;
}

int gpus_fd (const struct gpus *g)
{
    return g && !g->none ? g->fd : -1;
}

void gpus_ask (struct gpus *g, uint32_t which)
{
    if (g && !g->none && !g->asked)
        g->asked =
            send (g->fd, &which, sizeof (which), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof (which);
}

/* Without a GPU the child ends at once. */
static void reap_reader (struct gpus *g)
{
    if (g && g->pid > 0 && waitpid (g->pid, NULL, WNOHANG) != 0)
        g->pid = 0;
}

enum gpus_answer gpus_take (struct gpus *g, struct gpu_readings *r)
{
    ssize_t n;

    if (!g || g->none) {
        reap_reader (g);
        return GPUS_NONE;
    }
    n = recv (g->fd, r, sizeof (*r), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return GPUS_PENDING;
    g->asked = false;
    g->none = n != (ssize_t)sizeof (*r) || r->n == 0;
    return g->none ? GPUS_NONE : GPUS_READ;
}

/* Wait only briefly for the child: if it hangs in the driver, even SIGKILL does not end
 * it, and init will reap it.
 */
void gpus_end (struct gpus *g)
{
    static const struct timespec while_it_ends = { .tv_nsec = 1000000 };

    if (!g)
        return;
    close (g->fd);
    if (g->pid > 0)
        kill (g->pid, SIGKILL);
    for (int i = 0; i < 50 && g->pid > 0; i++) {
        reap_reader (g);
        if (g->pid > 0)
            nanosleep (&while_it_ends, NULL);
    }
    free (g);
}
