/* SPDX-License-Identifier: Apache-2.0 */
/* Read AMD's GPUs, in sysfs. */
#include "launcher/monitor/amd.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/host/sysfs.h"

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

static void
read_files (int device, const struct file *f, size_t n, struct gpu_sample *g)
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

void amd_read (int sysfs, struct gpu_readings *r)
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
