/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's management library says of the GPUs of this process. */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/check/health.h"

/* The library is part of the driver and its header is not: these are the
 * prototypes that it has had since CUDA 11.
 */
struct nvml_device;
typedef struct nvml_device *device_t;

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct memory_info {
    unsigned long long total, free, used;
};

struct process_info {
    unsigned pid;
    unsigned long long memory;
    unsigned instance, compute_instance;
};

enum { OK = 0, NOT_FOUND = 6, NOT_LOADED = 9, LOST = 15, RESET = 16 };

enum { UNCORRECTED = 1, SINCE_BOOT = 0, LINKS = 18, PROCESSES = 64 };

/* Bits of the reasons for a lower clock. */
enum {
    IDLE = 0x1,
    HW_SLOWDOWN = 0x8,
    HW_THERMAL = 0x40,
    POWER_BRAKE = 0x80,
    SW_THERMAL = 0x20,
};

static struct {
    int (*init) (void);
    int (*count) (unsigned *);
    int (*by_index) (unsigned, device_t *);
    int (*name) (device_t, char *, unsigned);
    int (*uuid) (device_t, char *, unsigned);
    int (*pci) (device_t, struct pci_info *);
    int (*ecc_mode) (device_t, int *, int *);
    int (*ecc_errors) (device_t, int, int, unsigned long long *);
    int (*pages_pending) (device_t, int *);
    int (*rows) (device_t, unsigned *, unsigned *, unsigned *, unsigned *);
    int (*reasons) (device_t, unsigned long long *);
    int (*link) (device_t, unsigned, int *);
    int (*persistence) (device_t, int *);
    int (*memory) (device_t, struct memory_info *);
    int (*processes) (device_t, unsigned *, struct process_info *);
    int (*width) (device_t, unsigned *);
    int (*max_width) (device_t, unsigned *);
    int (*generation) (device_t, unsigned *);
    int (*max_generation) (device_t, unsigned *);
    int (*mig) (device_t, int *, int *);
    int (*driver) (char *, unsigned);
    int (*cuda) (int *);
} nvml;

/* clang-format off */
static const struct {
    void *at;
    const char *name;
    bool needed;
} symbols[] = {
    { &nvml.init,           "nvmlInit_v2",                              true },
    { &nvml.count,          "nvmlDeviceGetCount_v2",                    true },
    { &nvml.by_index,       "nvmlDeviceGetHandleByIndex_v2",            true },
    { &nvml.name,           "nvmlDeviceGetName",                        true },
    { &nvml.uuid,           "nvmlDeviceGetUUID",                        true },
    { &nvml.pci,            "nvmlDeviceGetPciInfo_v3",                  true },
    { &nvml.ecc_mode,       "nvmlDeviceGetEccMode",                     false },
    { &nvml.ecc_errors,     "nvmlDeviceGetTotalEccErrors",              false },
    { &nvml.pages_pending,  "nvmlDeviceGetRetiredPagesPendingStatus",   false },
    { &nvml.rows,           "nvmlDeviceGetRemappedRows",                false },
    { &nvml.reasons,        "nvmlDeviceGetCurrentClocksThrottleReasons", false },
    { &nvml.link,           "nvmlDeviceGetNvLinkState",                 false },
    { &nvml.persistence,    "nvmlDeviceGetPersistenceMode",             false },
    { &nvml.memory,         "nvmlDeviceGetMemoryInfo",                  false },
    { &nvml.processes,      "nvmlDeviceGetComputeRunningProcesses_v3",  false },
    { &nvml.width,          "nvmlDeviceGetCurrPcieLinkWidth",           false },
    { &nvml.max_width,      "nvmlDeviceGetMaxPcieLinkWidth",            false },
    { &nvml.generation,     "nvmlDeviceGetCurrPcieLinkGeneration",      false },
    { &nvml.max_generation, "nvmlDeviceGetMaxPcieLinkGeneration",       false },
    { &nvml.mig,            "nvmlDeviceGetMigMode",                     false },
    { &nvml.driver,         "nvmlSystemGetDriverVersion",               false },
    { &nvml.cuda,           "nvmlSystemGetCudaDriverVersion_v2",        false },
};
/* clang-format on */

/* One GPU that is being looked at. */
struct look {
    const struct check_place *place;
    device_t device;
    const char *bus;
    bool lost;
};

/* ---- which GPUs are this process's ---- */

static const char *visible (void)
{
    const char *list = getenv ("CUDA_VISIBLE_DEVICES");

    return list && strcmp (list, "NoDevFiles") ? list : NULL;
}

static long count_items (const char *list)
{
    long n = *list != '\0';

    for (; *list; list++)
        n += *list == ',';
    return n;
}

long gpus_given (void)
{
    const char *all = getenv ("SLURM_GPUS_ON_NODE");
    const char *list = visible ();

    if (list && *list)
        return strcmp (list, "-1") ? count_items (list) : 0;
    return all ? atol (all) : 0;
}

/* A list of numbers, or of what UUIDs begin with. */
bool gpu_is_given (unsigned i, const char *uuid)
{
    const char *list = visible ();

    if (!list)
        return true;
    while (*list) {
        size_t n = strcspn (list, ",");
        char *end;
        unsigned long index = strtoul (list, &end, 10);
        if (n > 0 && end == list + n ? index == i
                                     : n > 4 && !strncmp (list, uuid, n))
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* ---- one GPU ---- */

/* 0: the answer counts.  A GPU without a feature says so with an error. */
static int ask (struct look *l, int rv)
{
    if ((rv == LOST || rv == RESET) && !l->lost) {
        l->lost = true;
        check_tells (l->place,
                     SEVERITY_BAD,
                     rv == LOST ? "GPU %s: lost (it fell off the bus)"
                                : "GPU %s: the driver wants it reset",
                     l->bus);
    }
    return rv;
}

#define ASK(l, f, ...)                                                         \
    (nvml.f && !(l)->lost && ask (l, nvml.f ((l)->device, __VA_ARGS__)) == OK)

static void look_at_memory (struct look *l)
{
    unsigned corrected, uncorrected, pending, failed;
    unsigned long long errors;
    int on, later;

    if (ASK (l, ecc_mode, &on, &later) && !on)
        check_tells (l->place, SEVERITY_WARN, "GPU %s: ECC is off", l->bus);
    if (ASK (l, ecc_errors, UNCORRECTED, SINCE_BOOT, &errors) && errors)
        check_tells (l->place,
                     SEVERITY_BAD,
                     "GPU %s: %llu uncorrected ECC errors since its driver "
                     "was loaded",
                     l->bus,
                     errors);
    if (ASK (l, pages_pending, &on) && on)
        check_tells (l->place,
                     SEVERITY_BAD,
                     "GPU %s: pages to retire; it needs a reset",
                     l->bus);
    if (!ASK (l, rows, &corrected, &uncorrected, &pending, &failed))
        return;
    if (failed)
        check_tells (l->place,
                     SEVERITY_BAD,
                     "GPU %s: a row of its memory could not be remapped",
                     l->bus);
    else if (pending)
        check_tells (l->place,
                     SEVERITY_BAD,
                     "GPU %s: a row of its memory is to be remapped; it needs "
                     "a reset",
                     l->bus);
}

static bool look_at_clock (struct look *l)
{
    unsigned long long reasons = 0;

    if (!ASK (l, reasons, &reasons))
        return false;
    if (reasons & (HW_THERMAL | POWER_BRAKE | HW_SLOWDOWN))
        check_tells (l->place,
                     SEVERITY_BAD,
                     "GPU %s: slowed down by its hardware (%s)",
                     l->bus,
                     reasons & HW_THERMAL    ? "temperature"
                     : reasons & POWER_BRAKE ? "power brake"
                                             : "no further reason");
    else if (reasons & SW_THERMAL)
        check_tells (l->place,
                     SEVERITY_WARN,
                     "GPU %s: slowed down by its driver (temperature)",
                     l->bus);
    return reasons & IDLE;
}

/* Where none is up there is no NVLink, or it is not used. */
static void look_at_links (struct look *l)
{
    unsigned up = 0, down = 0, first = 0;
    int on;

    for (unsigned i = 0; i < LINKS; i++) {
        if (!ASK (l, link, i, &on))
            continue;
        if (!on && down++ == 0)
            first = i;
        up += on != 0;
    }
    if (up && down)
        check_tells (l->place,
                     SEVERITY_BAD,
                     "GPU %s: %u of %u NVLinks down (the first is link %u)",
                     l->bus,
                     down,
                     up + down,
                     first);
}

/* An idle GPU lowers the generation of its link, never the width. */
static void look_at_pcie (struct look *l, bool idle)
{
    unsigned now, most;

    if (ASK (l, width, &now) && ASK (l, max_width, &most) && now < most)
        check_tells (l->place,
                     SEVERITY_WARN,
                     "GPU %s: PCIe x%u instead of x%u",
                     l->bus,
                     now,
                     most);
    if (!idle && ASK (l, generation, &now) && ASK (l, max_generation, &most)
        && now < most)
        check_tells (l->place,
                     SEVERITY_NOTE,
                     "GPU %s: PCIe generation %u instead of %u",
                     l->bus,
                     now,
                     most);
}

/* In a container of its own a process sees 0, or numbers that say nothing. */
static void look_at_users (struct look *l)
{
    struct process_info list[PROCESSES];
    struct memory_info m;
    unsigned n = PROCESSES;
    int on;

    if (ASK (l, processes, &n, list) && n > 0)
        check_tells (l->place,
                     SEVERITY_WARN,
                     "GPU %s: %u process%s on it already (the first is %u)",
                     l->bus,
                     n,
                     n == 1 ? "" : "es",
                     list[0].pid);
    else if (ASK (l, memory, &m) && m.total && m.used > m.total / 10)
        check_tells (l->place,
                     SEVERITY_WARN,
                     "GPU %s: %llu of %llu MiB are in use already",
                     l->bus,
                     m.used >> 20,
                     m.total >> 20);
    if (ASK (l, persistence, &on) && !on)
        check_tells (
            l->place, SEVERITY_NOTE, "GPU %s: persistence mode is off", l->bus);
}

static void look_at (struct look *l)
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

static int load (void)
{
    void *library = dlopen ("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof (symbols) / sizeof (*symbols);
         i++) {
        void *f = dlsym (library, symbols[i].name);
        memcpy (symbols[i].at, &f, sizeof (f));
        if (!f && symbols[i].needed)
            return -1;
    }
    return library ? 0 : -1;
}

static void tell_versions (const struct check_place *p)
{
    char driver[80] = "", text[32];
    int cuda;

    if (nvml.driver && nvml.driver (driver, sizeof (driver)) == OK)
        check_fact (p, "versions", "NVIDIA driver", json_string (driver));
    if (!nvml.cuda || nvml.cuda (&cuda) != OK)
        return;
    snprintf (text, sizeof (text), "%d.%d", cuda / 1000, cuda % 1000 / 10);
    check_fact (p, "versions", "CUDA", json_string (text));
}

/* Ranks that all see all GPUs of the node look at some of them each. */
static bool is_mine (const struct check_place *p, long i)
{
    const char *all = getenv ("SLURM_GPUS_ON_NODE");
    bool shared = !all || gpus_given () >= atol (all);

    return !shared || i % p->local_size == p->local_rank;
}

/* 1: it is this process's, 0: it is not, or cannot be asked. */
static int meet (const struct check_place *p, unsigned i, long nth)
{
    struct look l = { .place = p };
    struct pci_info pci = { .bus_id = "" };
    char name[96] = "", uuid[96] = "", bus[40];
    int rv;

    snprintf (bus, sizeof (bus), "number %u", i);
    check_begins (p, "GPU %s", bus);
    l.bus = bus;
    if ((rv = nvml.by_index (i, &l.device)) != OK) {
        if (!gpu_is_given (i, ""))
            return 0;
        ask (&l, rv);
        if (!l.lost)
            check_tells (p,
                         SEVERITY_BAD,
                         "GPU %s: it cannot be opened (NVML error %d)",
                         bus,
                         rv);
        return 1;
    }
    nvml.uuid (l.device, uuid, sizeof (uuid));
    if (!gpu_is_given (i, uuid))
        return 0;
    nvml.name (l.device, name, sizeof (name));
    if (ask (&l, nvml.pci (l.device, &pci)) == OK)
        snprintf (bus, sizeof (bus), "%.31s", pci.bus_id);
    check_begins (p, "GPU %s", bus);
    check_fact (
        p, "gpus", bus, json_pack ("{s:s, s:s}", "name", name, "uuid", uuid));
    if (p->level > LEVEL_NONE && is_mine (p, nth))
        look_at (&l);
    return 1;
}

static bool gives_whole_gpus (void)
{
    const char *list = visible ();

    return !list || strncmp (list, "MIG-", 4);
}

static void no_library (const struct check_place *p)
{
    if (p->level > LEVEL_NONE && p->local_rank == 0
        && access ("/proc/driver/nvidia/version", F_OK) == 0)
        check_tells (p,
                     SEVERITY_WARN,
                     "GPUs are not looked at: no libnvidia-ml.so.1 of CUDA 11 "
                     "or newer");
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

/* The library may be on a node that has GPUs of another make. */
static bool has_hardware (void)
{
    unsigned vendor = 0, class = 0;
    glob_t list;
    bool found = false;

    if (glob ("/sys/bus/pci/devices/*", 0, NULL, &list) != 0)
        return false;
    for (size_t i = 0; i < list.gl_pathc && !found; i++)
        found = read_hex (list.gl_pathv[i], "vendor", &vendor) == 0
                && read_hex (list.gl_pathv[i], "class", &class) == 0
                && vendor == 0x10de && class >> 16 == 3;
    globfree (&list);
    return found;
}

void check_gpus (const struct check_place *p)
{
    long given = gpus_given ();
    long seen = 0;
    unsigned n = 0;
    int rv;

    check_begins (p, "the driver");
    if (load () < 0) {
        no_library (p);
        return;
    }
    if ((rv = nvml.init ()) != OK || (rv = nvml.count (&n)) != OK) {
        if (given > 0 && p->level > LEVEL_NONE && has_hardware ())
            check_tells (p,
                         SEVERITY_BAD,
                         rv == NOT_LOADED
                             ? "GPUs: the NVIDIA driver is not loaded (NVML "
                               "error %d)"
                             : "GPUs: the driver does not answer (NVML error "
                               "%d)",
                         rv);
        return;
    }
    tell_versions (p);
    for (unsigned i = 0; i < n; i++)
        seen += meet (p, i, seen);
    if (p->level > LEVEL_NONE && seen < given && gives_whole_gpus ())
        check_tells (p,
                     SEVERITY_BAD,
                     "GPUs: Slurm gave %ld, the driver has %ld of them",
                     given,
                     seen);
}
