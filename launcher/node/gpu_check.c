/* SPDX-License-Identifier: Apache-2.0 */
/* Check the NVIDIA GPUs of this process through NVML. */
#include "launcher/node/checks.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/node/expected.h"
#include "launcher/sys/nvml.h"
#include "runtime/base/environment.h"
#include "runtime/base/nearest_word.h"

enum { PROCESSES = 64 };

static struct nvml nvml;

/* The check of one GPU. */
struct gpu_check {
    const struct check_place *place;
    struct nvml_device *device;
    const char *bus;
    bool lost;
};

/* ---- which GPUs are this process's ---- */

bool gpus_none (void)
{
    return gpus_given () == 0 && (gpus_visible () || getenv ("SLURM_JOB_ID"));
}

/* A list of numbers, or of what UUIDs begin with. */
static bool gpu_is_given (unsigned i, const char *uuid)
{
    const char *list = gpus_visible ();

    if (!list)
        return true;
    while (*list) {
        size_t n = strcspn (list, ",");
        char *end;
        unsigned long index = strtoul (list, &end, 10);
        if (n > 0 && end == list + n ? index == i : n > 4 && !strncmp (list, uuid, n))
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* ---- one GPU ---- */

/* 0: the answer counts.  A GPU without a feature says so with an error. */
static int ask (struct gpu_check *l, int rv)
{
    if ((rv == NVML_LOST || rv == NVML_RESET) && !l->lost) {
        l->lost = true;
        check_finding (l->place, SEVERITY_BAD,
                       rv == NVML_LOST ? "GPU %s: lost (it fell off the bus)"
                                       : "GPU %s: the driver wants it reset",
                       l->bus);
    }
    return rv;
}

#define ASK(l, f, ...)                                                                             \
    (nvml.f && !(l)->lost && ask (l, nvml.f ((l)->device, __VA_ARGS__)) == NVML_SUCCESS)

static void look_at_memory (struct gpu_check *l)
{
    unsigned corrected, uncorrected, pending, failed;
    unsigned long long errors;
    int on, later;

    if (ASK (l, ecc_mode, &on, &later) && !on)
        check_finding (l->place, SEVERITY_WARN, "GPU %s: ECC is off", l->bus);
    if (ASK (l, ecc_errors, NVML_UNCORRECTED, NVML_SINCE_BOOT, &errors) && errors)
        check_finding (l->place, SEVERITY_BAD,
                       "GPU %s: %llu uncorrected ECC errors since its driver "
                       "was loaded",
                       l->bus, errors);
    if (ASK (l, pages_pending, &on) && on)
        check_finding (l->place, SEVERITY_BAD, "GPU %s: pages to retire; it needs a reset", l->bus);
    if (!ASK (l, rows, &corrected, &uncorrected, &pending, &failed))
        return;
    if (failed)
        check_finding (l->place, SEVERITY_BAD, "GPU %s: a row of its memory could not be remapped",
                       l->bus);
    else if (pending)
        check_finding (l->place, SEVERITY_BAD,
                       "GPU %s: a row of its memory is to be remapped; it needs "
                       "a reset",
                       l->bus);
}

static bool look_at_clock (struct gpu_check *l)
{
    unsigned long long reasons = 0;

    if (!ASK (l, slowed, &reasons))
        return false;
    if (reasons & (NVML_HW_THERMAL | NVML_POWER_BRAKE | NVML_HW_SLOWDOWN))
        check_finding (l->place, SEVERITY_BAD, "GPU %s: slowed down by its hardware (%s)", l->bus,
                       reasons & NVML_HW_THERMAL    ? "temperature"
                       : reasons & NVML_POWER_BRAKE ? "power brake"
                                                    : "no further reason");
    else if (reasons & NVML_SW_THERMAL)
        check_finding (l->place, SEVERITY_WARN, "GPU %s: slowed down by its driver (temperature)",
                       l->bus);
    return reasons & NVML_IDLE;
}

/* Where none is up there is no NVLink, or it is not used. */
static void look_at_links (struct gpu_check *l)
{
    unsigned up = 0, down = 0, first = 0;
    int on;

    for (unsigned i = 0; i < NVML_LINKS; i++) {
        if (!ASK (l, link, i, &on))
            continue;
        if (!on && down++ == 0)
            first = i;
        up += on != 0;
    }
    if (up && down)
        check_finding (l->place, SEVERITY_BAD,
                       "GPU %s: %u of %u NVLinks down (the first is link %u)", l->bus, down,
                       up + down, first);
}

/* An idle GPU lowers the generation of its link, never the width. */
static void look_at_pcie (struct gpu_check *l, bool idle)
{
    unsigned now, most;

    if (ASK (l, width, &now) && ASK (l, max_width, &most) && now < most)
        check_finding (l->place, SEVERITY_WARN, "GPU %s: PCIe x%u instead of x%u", l->bus, now,
                       most);
    if (!idle && ASK (l, generation, &now) && ASK (l, max_generation, &most) && now < most)
        check_finding (l->place, SEVERITY_NOTE, "GPU %s: PCIe generation %u instead of %u", l->bus,
                       now, most);
}

/* In a container of its own a process sees 0, or numbers that say nothing. */
static void look_at_users (struct gpu_check *l)
{
    struct nvml_process list[PROCESSES];
    struct nvml_memory m;
    unsigned n = PROCESSES;
    int on;

    if (ASK (l, processes, &n, list) && n > 0)
        check_finding (l->place, SEVERITY_WARN,
                       "GPU %s: %u process%s on it already (the first is %u)", l->bus, n,
                       n == 1 ? "" : "es", list[0].pid);
    else if (!l->lost && ask (l, nvml_memory (&nvml, l->device, &m)) == NVML_SUCCESS && m.total
             && m.used > m.total / 10)
        check_finding (l->place, SEVERITY_WARN, "GPU %s: %llu of %llu MiB are in use already",
                       l->bus, m.used >> 20, m.total >> 20);
    if (ASK (l, persistence, &on) && !on)
        check_finding (l->place, SEVERITY_NOTE, "GPU %s: persistence mode is off", l->bus);
}

static void look_at (struct gpu_check *l)
{
    int now, later;
    bool idle;

    /* the parts of one that is divided have no links or clocks */
    if (ASK (l, mig, &now, &later) && now)
        return;
    look_at_memory (l);
    idle = look_at_clock (l);
    look_at_links (l);
    look_at_pcie (l, idle);
    look_at_users (l);
}

/* ---- all of them ---- */

static void report_versions (const struct check_place *p)
{
    char driver[80] = "", text[32];
    int cuda;

    if (nvml.driver && nvml.driver (driver, sizeof (driver)) == NVML_SUCCESS)
        check_fact (p, "versions", "NVIDIA driver", json_string (driver));
    if (!nvml.cuda || nvml.cuda (&cuda) != NVML_SUCCESS)
        return;
    snprintf (text, sizeof (text), "%d.%d", cuda / 1000, cuda % 1000 / 10);
    check_fact (p, "versions", "CUDA", json_string (text));
}

bool gpu_is_mine (const struct check_place *p, long i)
{
    bool shared = gpus_given () >= environment_number ("SLURM_GPUS_ON_NODE", 0);

    return !shared || i % p->local_size == p->local_rank;
}

/* 1: it is this process's, 0: it is not, or cannot be asked. */
static int check_gpu (const struct check_place *p, unsigned i, long nth)
{
    struct gpu_check l = { .place = p };
    struct nvml_pci pci = { .bus_id = "" };
    char name[96] = "", uuid[96] = "", bus[40];
    int rv;

    snprintf (bus, sizeof (bus), "number %u", i);
    check_stage (p, "GPU %s", bus);
    l.bus = bus;
    if ((rv = nvml.handle (i, &l.device)) != NVML_SUCCESS) {
        if (!gpu_is_given (i, ""))
            return 0;
        ask (&l, rv);
        if (!l.lost)
            check_finding (p, SEVERITY_BAD, "GPU %s: it cannot be opened (NVML error %d)", bus, rv);
        return 1;
    }
    if (nvml.uuid)
        nvml.uuid (l.device, uuid, sizeof (uuid));
    if (!gpu_is_given (i, uuid))
        return 0;
    if (nvml.name)
        nvml.name (l.device, name, sizeof (name));
    if (ASK (&l, pci, &pci))
        snprintf (bus, sizeof (bus), "%.31s", pci.bus_id);
    check_stage (p, "GPU %s", bus);
    check_fact (p, "gpus", bus, json_pack ("{s:s, s:s}", "name", name, "uuid", uuid));
    if (p->level > LEVEL_NONE && gpu_is_mine (p, nth))
        look_at (&l);
    return 1;
}

static bool gives_whole_gpus (void)
{
    const char *list = gpus_visible ();

    return !list || strncmp (list, "MIG-", 4);
}

static int read_hex (const char *folder, const char *name, unsigned *value)
{
    char path[PATH_MAX];
    FILE *f;
    int n;

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    if (!(f = fopen (path, "re")))
        return -1;
    n = fscanf (f, "%x", value);
    fclose (f);
    return n == 1 ? 0 : -1;
}

/* Whether the machine has a device that 'is_one' by vendor and class. */
static bool has_device (bool (*is_one) (unsigned vendor, unsigned class))
{
    unsigned vendor = 0, class = 0;
    glob_t list;
    bool found = false;

    if (glob ("/sys/bus/pci/devices/*", 0, NULL, &list) != 0)
        return false;
    for (size_t i = 0; i < list.gl_pathc && !found; i++)
        found = read_hex (list.gl_pathv[i], "vendor", &vendor) == 0
                && read_hex (list.gl_pathv[i], "class", &class) == 0 && is_one (vendor, class);
    globfree (&list);
    return found;
}

static bool is_nvidia (unsigned vendor, unsigned class)
{
    return vendor == 0x10de && class >> 16 == 3;
}

/* AMD's, and accelerators of Intel and Habana: no graphics of a processor. */
static bool is_other (unsigned vendor, unsigned class)
{
    return (vendor == 0x1002 && (class >> 16 == 3 || class >> 16 == 0x12))
           || (vendor == 0x8086 && (class >> 8 == 0x380 || class >> 16 == 0x12))
           || vendor == 0x1da3;
}

static bool has_hardware (void)
{
    return has_device (is_nvidia);
}

static bool is_loaded (void)
{
    return access ("/proc/driver/nvidia/version", F_OK) == 0;
}

/* No GPU can be asked: bad where there should be one. */
static void report_none (const struct check_place *p, const char *why)
{
    const char *by;
    long n = gpus_expected (&by);

    /* of GPUs of another make NVML knows nothing */
    if (p->level == LEVEL_NONE || (!has_hardware () && has_device (is_other)))
        return;
    if (n > 0 && has_hardware () && !strcmp (by, "Slurm"))
        check_finding (p, SEVERITY_BAD, "GPUs: %s", why);
    else if (n > 0)
        check_finding (p, SEVERITY_BAD,
                       "GPUs: %ld expected (by %s), and none can be looked at: "
                       "%s",
                       n, by, why);
    else if (has_hardware () && p->local_rank == 0)
        check_finding (p, is_loaded () ? SEVERITY_WARN : SEVERITY_BAD,
                       "GPUs: there are some of NVIDIA's, and none can be "
                       "looked at: %s",
                       why);
    else if (is_loaded () && p->local_rank == 0)
        check_finding (p, SEVERITY_WARN, "GPUs are not looked at: %s", why);
}

static void compare_count (const struct check_place *p, long seen)
{
    const char *by;
    long n = gpus_expected (&by);

    if (p->level == LEVEL_NONE || seen >= n || !gives_whole_gpus ())
        return;
    if (!strcmp (by, "Slurm"))
        check_finding (p, SEVERITY_BAD, "GPUs: Slurm gave %ld, the driver has %ld of them", n,
                       seen);
    else
        check_finding (p, SEVERITY_BAD, "GPUs: %ld expected (by %s), the driver has %ld", n, by,
                       seen);
}

void check_gpus (const struct check_place *p)
{
    long seen = 0;
    unsigned n = 0;
    char why[80];
    int rv;

    check_stage (p, "the driver");
    if (nvml_load (&nvml, NULL) < 0) {
        report_none (p, is_loaded () ? "no libnvidia-ml.so.1 of CUDA 11 or newer"
                                     : "the NVIDIA driver is not loaded, and there is no "
                                       "libnvidia-ml.so.1 of CUDA 11 or newer");
        return;
    }
    if ((rv = nvml.init ()) != NVML_SUCCESS || (rv = nvml.count (&n)) != NVML_SUCCESS) {
        snprintf (why, sizeof (why),
                  rv == NVML_NOT_LOADED ? "the NVIDIA driver is not loaded (NVML error %d)"
                                        : "the driver does not answer (NVML error %d)",
                  rv);
        report_none (p, why);
        return;
    }
    report_versions (p);
    for (unsigned i = 0; i < n; i++)
        seen += check_gpu (p, i, seen);
    compare_count (p, seen);
}
