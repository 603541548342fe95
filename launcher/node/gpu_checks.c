/* SPDX-License-Identifier: Apache-2.0 */
/* Check the GPUs that this rank sees, and measure how fast they copy and compute. */

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/node/checks.h"
#include "launcher/node/diagnosis.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/nvml.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/nearest_word.h"
#include "runtime/base/symbols.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/slurmconf.h"

/* ---- the expected number of GPUs ---- */

enum { LINE = 8192 };

/* CUDA_VISIBLE_DEVICES, or NULL if it is not set or lists no devices. */
static const char *gpus_visible (void)
{
    const char *list = getenv ("CUDA_VISIBLE_DEVICES");

    return list && strcmp (list, "NoDevFiles") ? list : NULL;
}

/* Number of GPUs that Slurm gave to this process.  A prolog finds them in CUDA_VISIBLE_DEVICES or
 * SLURM_JOB_GPUS.
 */
static long gpus_given (void)
{
    static const char *const lists[] = { "SLURM_STEP_GPUS", "SLURM_JOB_GPUS" };
    const char *list = gpus_visible ();
    long n = (long)environment_number ("SLURM_GPUS_ON_NODE", 0);

    if (list && *list)
        return strcmp (list, "-1") ? words_count (list) : 0;
    for (size_t i = 0; i < 2 && n == 0; i++)
        if ((list = getenv (lists[i])))
            n = words_count (list);
    return n;
}

/* ---- Slurm's configuration ---- */

/* The node to find in Slurm's configuration files, and what they tell about it. */
struct expected_node {
    char name[256];  /* NodeName, or the host name */
    char other[256]; /* the host name with its domain; "": none */
    long all;        /* GPUs of NodeName=DEFAULT */
    long gpus;
    size_t at; /* index of the name in a list */
};

/* Ignore case, as DNS does.  Leaves the index of the name in 'at'. */
static int is_node (void *arg, const char *name)
{
    struct expected_node *s = arg;

    if (!strcasecmp (s->name, name) || !strcasecmp (s->other, name))
        return 1;
    s->at++;
    return 0;
}

static bool names_node (const char *list, struct expected_node *s)
{
    s->at = 0;
    return layout_each_host (list, is_node, s) == 1;
}

/* Copy the name with the index 'at'. */
static int keep_name_at (void *arg, const char *name)
{
    struct expected_node *s = arg;

    if (s->at-- > 0)
        return 0;
    snprintf (s->name, sizeof (s->name), "%s", name);
    return 1;
}

static int count_model_name (void *arg, const char *name)
{
    (void)name;
    ++*(long *)arg;
    return 0;
}

/* If the host is a NodeHostname, find its NodeName, because gres.conf contains that. */
static int read_slurm (void *arg, const char *line)
{
    struct expected_node *s = arg;
    char list[LINE], gres[LINE], hosts[LINE];
    bool has = slurmconf_value (line, "Gres", gres, sizeof (gres));

    if (!slurmconf_value (line, "NodeName", list, sizeof (list)))
        return 0;
    if (!strcasecmp (list, "DEFAULT")) {
        if (has)
            s->all = slurmconf_gpus (gres);
        return 0;
    }
    if (!names_node (list, s)) {
        if (!slurmconf_value (line, "NodeHostname", hosts, sizeof (hosts))
            || !names_node (hosts, s))
            return 0;
        layout_each_host (list, keep_name_at, s);
    }
    s->gpus = has ? slurmconf_gpus (gres) : s->all;
    return 1;
}

/* Ignore lines without NodeName: they apply to all nodes to which slurm.conf gives GPUs, and it
 * gave none to this one.
 */
static int read_gres (void *arg, const char *line)
{
    struct expected_node *s = arg;
    char text[LINE];

    if (!slurmconf_value (line, "NodeName", text, sizeof (text)) || !names_node (text, s)
        || !slurmconf_value (line, "Name", text, sizeof (text)) || strcasecmp (text, "gpu"))
        return 0;
    if (slurmconf_value (line, "Count", text, sizeof (text)))
        s->gpus += atol (text);
    else if (slurmconf_value (line, "File", text, sizeof (text)))
        layout_each_host (text, count_model_name, &s->gpus);
    return 0;
}

static void find_expected_node (struct expected_node *s)
{
    const char *name = getenv ("SLURMD_NODENAME");

    gethostname (s->name, sizeof (s->name) - 1);
    if (name) {
        snprintf (s->name, sizeof (s->name), "%s", name);
    } else if (strchr (s->name, '.')) {
        memcpy (s->other, s->name, sizeof (s->other));
        s->name[strcspn (s->name, ".")] = '\0';
    }
}

static long of_node (const char **by)
{
    const char *conf = slurmconf_path (getenv ("SLURM_CONF"));
    struct expected_node s = { .gpus = 0 };
    char path[PATH_MAX];

    if (!conf)
        return 0;
    find_expected_node (&s);
    *by = "slurm.conf";
    slurmconf_each (conf, read_slurm, &s);
    if (s.gpus > 0)
        return s.gpus;
    *by = "gres.conf";
    snprintf (path, sizeof (path), "%.*sgres.conf",
              (int)(strrchr (conf, '/') ? strrchr (conf, '/') - conf + 1 : 0), conf);
    slurmconf_each (path, read_gres, &s);
    if (s.gpus > 0)
        return s.gpus;
    *by = "scontrol show node";
    return access (conf, R_OK) == 0 ? slurm_gpus_of (s.name) : 0;
}

/* Number of GPUs that this process should have: from `dl check --gpus`, or else from Slurm's
 * variables in a job or prolog, or else from the node in Slurm's configuration.  '*by' becomes the
 * source.  Returns 0 if there should be none, or if it is unknown.
 */
static long gpus_expected (const char **by)
{
    long n = (long)environment_number (EXPECTED_VARIABLE, -1);

    *by = "--gpus";
    if (n >= 0)
        return n;
    *by = "Slurm";
    n = gpus_given ();
    if (n > 0 || getenv ("SLURM_JOB_ID"))
        return n;
    return of_node (by);
}

/* ---- what NVML reports ---- */

enum { PROCESSES = 64 };

static struct nvml nvml;

/* The check of one GPU. */
struct gpu_check {
    const struct check_place *place;
    struct nvml_device *device;
    const char *bus;
    bool lost;
};

/* ---- the GPUs of this process ---- */

/* Whether Slurm gave this process no GPUs.  Outside Slurm, a process has all of them. */
static bool gpus_none (void)
{
    return gpus_given () == 0 && (gpus_visible () || getenv ("SLURM_JOB_ID"));
}

/* Whether CUDA_VISIBLE_DEVICES lists the GPU by its number or by a prefix of its UUID. */
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

/* Report a GPU that is lost or needs a reset, once.  Ignore other errors: a GPU returns one for
 * each feature it lacks.  Returns 'rv'.
 */
static int count_nvml_answer (struct gpu_check *l, int rv)
{
    if ((rv == NVML_LOST || rv == NVML_RESET) && !l->lost) {
        l->lost = true;
        check_finding (l->place, SEVERITY_BAD,
                       rv == NVML_LOST ? "GPU %s: lost (it fell off the bus)"
                                       : "GPU %s: the driver requests a reset",
                       l->bus);
    }
    return rv;
}

#define ASK(l, f, ...)                                                                             \
    (nvml.f && !(l)->lost                                                                          \
     && count_nvml_answer (l, nvml.f ((l)->device, __VA_ARGS__)) == NVML_SUCCESS)

static void look_at_memory (struct gpu_check *l)
{
    unsigned corrected, uncorrected, pending, failed;
    unsigned long long errors;
    int on, later;

    if (ASK (l, ecc_mode, &on, &later) && !on)
        check_finding (l->place, SEVERITY_WARN, "GPU %s: ECC is off", l->bus);
    if (ASK (l, ecc_errors, NVML_UNCORRECTED, NVML_SINCE_BOOT, &errors) && errors)
        check_finding (l->place, SEVERITY_BAD,
                       "GPU %s: %llu uncorrected ECC errors since its driver was loaded", l->bus,
                       errors);
    if (ASK (l, pages_pending, &on) && on)
        check_finding (l->place, SEVERITY_BAD, "GPU %s: pages to retire; it needs a reset", l->bus);
    if (!ASK (l, rows, &corrected, &uncorrected, &pending, &failed))
        return;
    if (failed)
        check_finding (l->place, SEVERITY_BAD, "GPU %s: a row of its memory could not be remapped",
                       l->bus);
    else if (pending)
        check_finding (l->place, SEVERITY_BAD,
                       "GPU %s: a row of its memory is to be remapped; it needs a reset", l->bus);
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

/* If no link is up, the GPU has no NVLink or does not use it. */
static void check_nvlinks (struct gpu_check *l)
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

/* In its own PID namespace, a process sees 0 or meaningless numbers. */
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
    else if (!l->lost && count_nvml_answer (l, nvml_memory (&nvml, l->device, &m)) == NVML_SUCCESS
             && m.total && m.used > m.total / 10)
        check_finding (l->place, SEVERITY_WARN, "GPU %s: %llu of %llu MiB are in use already",
                       l->bus, m.used >> 20, m.total >> 20);
    if (ASK (l, persistence, &on) && !on)
        check_finding (l->place, SEVERITY_NOTE, "GPU %s: persistence mode is off", l->bus);
}

static void check_one_gpu (struct gpu_check *l)
{
    int now, later;
    bool idle;

    /* the parts of one that is divided have no links or clocks */
    if (ASK (l, mig, &now, &later) && now)
        return;
    look_at_memory (l);
    idle = look_at_clock (l);
    check_nvlinks (l);
    look_at_pcie (l, idle);
    look_at_users (l);
}

/* ---- all GPUs ---- */

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

/* Whether this rank checks GPU 'i'.  Ranks that all see the same GPUs divide them. */
static bool gpu_is_mine (const struct check_place *p, long i)
{
    bool shared = gpus_given () >= environment_number ("SLURM_GPUS_ON_NODE", 0);

    return !shared || i % p->local_size == p->local_rank;
}

/* Returns whether the GPU belongs to this process. */
static bool check_gpu (const struct check_place *p, unsigned i, long nth)
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
            return false;
        count_nvml_answer (&l, rv);
        if (!l.lost)
            check_finding (p, SEVERITY_BAD, "GPU %s: cannot open it (NVML error %d)", bus, rv);
        return true;
    }
    if (nvml.uuid)
        nvml.uuid (l.device, uuid, sizeof (uuid));
    if (!gpu_is_given (i, uuid))
        return false;
    if (nvml.name)
        nvml.name (l.device, name, sizeof (name));
    if (ASK (&l, pci, &pci))
        snprintf (bus, sizeof (bus), "%.31s", pci.bus_id);
    check_stage (p, "GPU %s", bus);
    check_fact (p, "gpus", bus, json_pack ("{s:s, s:s}", "name", name, "uuid", uuid));
    if (p->level > LEVEL_NONE && gpu_is_mine (p, nth))
        check_one_gpu (&l);
    return true;
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

/* Whether it is an AMD GPU, or an accelerator of Intel or Habana, but not a CPU's graphics. */
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

/* Report that no GPU can be checked.  That is bad if there should be one. */
static void report_none (const struct check_place *p, const char *why)
{
    const char *by;
    long n = gpus_expected (&by);

    /* NVML does not know the GPUs of other vendors */
    if (p->level == LEVEL_NONE || (!has_hardware () && has_device (is_other)))
        return;
    if (n > 0 && has_hardware () && !strcmp (by, "Slurm"))
        check_finding (p, SEVERITY_BAD, "GPUs: %s", why);
    else if (n > 0)
        check_finding (p, SEVERITY_BAD, "GPUs: %ld expected (by %s), but cannot check any: %s", n,
                       by, why);
    else if (has_hardware () && p->local_rank == 0)
        check_finding (p, is_loaded () ? SEVERITY_WARN : SEVERITY_BAD,
                       "GPUs: found NVIDIA GPUs, but cannot check them: %s", why);
    else if (is_loaded () && p->local_rank == 0)
        check_finding (p, SEVERITY_WARN, "GPUs: not checked: %s", why);
}

static void compare_count (const struct check_place *p, long seen)
{
    const char *by;
    long n = gpus_expected (&by);

    if (p->level == LEVEL_NONE || seen >= n || !gives_whole_gpus ())
        return;
    if (!strcmp (by, "Slurm"))
        check_finding (p, SEVERITY_BAD, "GPUs: Slurm allocated %ld, but the driver has %ld of them",
                       n, seen);
    else
        check_finding (p, SEVERITY_BAD, "GPUs: %ld expected (by %s), but the driver has %ld", n, by,
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
                                     : "the NVIDIA driver is not loaded, and libnvidia-ml.so.1 of "
                                       "CUDA 11 or newer is not installed");
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

/* ---- copies ---- */

/* ---- products of matrices ---- */

typedef unsigned long long device_pointer;

enum { PRODUCT_MAX = 8192 }; /* rows and columns */

struct gpu_product {
    device_pointer a, b, c; /* n x n each, of bfloat16 */
    size_t n;
    int (*finish) (void); /* waits for the GPU; returns a CUDA error, or 0 */
    double rate;          /* result in TFLOP/s */
    enum severity severity;
    char why[128]; /* why there is no result */
};

enum { PRODUCT_ROUNDS = 50 };

/* Constants of cuBLAS 11 and later, from its manual. */
enum { NOT_TRANSPOSED = 0, BFLOAT16 = 14, IN_FLOAT32 = 68, DEFAULT = -1 };
enum { FIRST_RELEASE = 11, LAST_RELEASE = 13 };
enum { EXECUTION_FAILED = 13 };

static struct blas {
    int (*create) (void **handle);
    int (*destroy) (void *handle);
    int (*product) (void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                    device_pointer a, int atype, int lda, device_pointer b, int btype, int ldb,
                    const void *beta, device_pointer c, int ctype, int ldc, int compute,
                    int algorithm);
} blas;

static const struct symbol product_symbols[] = {
    { "cublasCreate_v2", offsetof (struct blas, create) },
    { "cublasDestroy_v2", offsetof (struct blas, destroy) },
    { "cublasGemmEx", offsetof (struct blas, product) },
    { NULL },
};

/* First load cublasLt, which cublas needs, because the loader may not search this folder. */
static void *load_from (const char *folder, int release)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%slibcublasLt.so.%d", folder, release);
    dlopen (path, RTLD_LAZY | RTLD_GLOBAL);
    snprintf (path, sizeof (path), "%slibcublas.so.%d", folder, release);
    return dlopen (path, RTLD_LAZY | RTLD_LOCAL);
}

static void *load_matching (const char *pattern, int release)
{
    void *library = NULL;
    glob_t list;

    if (glob (pattern, 0, NULL, &list) != 0)
        return NULL;
    for (size_t i = 0; i < list.gl_pathc && !library; i++)
        library = load_from (list.gl_pathv[i], release);
    globfree (&list);
    return library;
}

/* Search the packages of the python3 in the user's PATH, because training uses them. */
static void *load_of_python (int release)
{
    const char *path = getenv ("PATH");
    char program[PATH_MAX], pattern[PATH_MAX + 64];
    void *library = NULL;

    while (path && *path && !library) {
        int n = (int)strcspn (path, ":");
        snprintf (program, sizeof (program), "%.*s/python3", n, path);
        if (*path == '/' && access (program, X_OK) == 0) {
            snprintf (pattern, sizeof (pattern), "%.*s/../lib/python3*/site-packages/nvidia/*/lib/",
                      n, path);
            return load_matching (pattern, release);
        }
        path += n + (path[n] == ':');
    }
    return library;
}

static int load_libraries (void)
{
    void *library = NULL;

    for (int r = LAST_RELEASE; r >= FIRST_RELEASE && !library; r--)
        if (!(library = load_from ("", r)) && !(library = load_of_python (r)))
            library = load_matching ("/usr/local/cuda*/lib*/", r);
    return symbols_load (&blas, library, product_symbols) ? -1 : 0;
}

/* Fill with random bfloat16 numbers of either sign, from 0.5 to 2. */
static void gpu_product_fill (unsigned *words, size_t size)
{
    uint64_t x = 88172645463325252;

    for (size_t i = 0; i < size / sizeof (*words); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = 0x3f003f00 | ((unsigned)(x >> 16) & 0x80ff80ff);
    }
}

static int run_product (const struct gpu_product *g, void *handle)
{
    static const float one = 1, zero = 0;
    int n = (int)g->n;

    return blas.product (handle, NOT_TRANSPOSED, NOT_TRANSPOSED, n, n, n, &one, g->a, BFLOAT16, n,
                         g->b, BFLOAT16, n, &zero, g->c, BFLOAT16, n, IN_FLOAT32, DEFAULT);
}

static int add_product_finding (struct gpu_product *g, enum severity severity, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static int add_product_finding (struct gpu_product *g, enum severity severity, const char *fmt, ...)
{
    va_list ap;

    g->severity = severity;
    va_start (ap, fmt);
    vsnprintf (g->why, sizeof (g->why), fmt, ap);
    va_end (ap);
    return -1;
}

/* Do not measure the first product, in which cuBLAS loads its kernels. */
static int call_product (struct gpu_product *g, void *handle)
{
    double start = 0;
    int rv = 0, cuda = 0;

    for (int i = 0; rv == 0 && i <= PRODUCT_ROUNDS; i++) {
        rv = run_product (g, handle);
        if (i > 0 || rv != 0)
            continue;
        if ((cuda = g->finish ()) != 0)
            break;
        start = monotonic ();
    }
    if (rv == EXECUTION_FAILED)
        return add_product_finding (g, SEVERITY_BAD, "cannot multiply matrices (cuBLAS error %d)",
                                    rv);
    if (rv != 0)
        return add_product_finding (g, SEVERITY_NOTE,
                                    "matrix products not measured (cuBLAS error %d)", rv);
    if (cuda != 0 || (cuda = g->finish ()) != 0)
        return add_product_finding (g, SEVERITY_BAD, "cannot multiply matrices (CUDA error %d)",
                                    cuda);
    g->rate = 2.0 * PRODUCT_ROUNDS * (double)g->n * (double)g->n * (double)g->n
              / (monotonic () - start) / 1e12;
    return 0;
}

/* Measure in the current context.  Returns -1 with 'severity' and 'why' on failure. */
static int gpu_product_measure (struct gpu_product *g)
{
    void *handle = NULL;
    int rv;

    if (load_libraries () < 0)
        return add_product_finding (g, SEVERITY_NOTE,
                                    "matrix products not measured: no libcublas.so.%d to .%d",
                                    FIRST_RELEASE, LAST_RELEASE);
    if ((rv = blas.create (&handle)) != 0)
        return add_product_finding (g, SEVERITY_NOTE,
                                    "matrix products not measured (cuBLAS error %d)", rv);
    rv = call_product (g, handle);
    blas.destroy (handle);
    return rv;
}

/* ---- memory ---- */

/* The CUDA driver has had these names since CUDA 3.2. */
static struct cuda_calls {
    int (*init) (unsigned);
    int (*count) (int *);
    int (*get) (int *, int);
    int (*bus) (char *, int, int);
    int (*retain) (void **, int);
    int (*release) (int);
    int (*use) (void *);
    int (*memory) (size_t *, size_t *);
    int (*alloc) (device_pointer *, size_t);
    int (*free) (device_pointer);
    int (*set) (device_pointer, unsigned, size_t);
    int (*copy) (device_pointer, device_pointer, size_t);
    int (*fetch) (void *, device_pointer, size_t);
    int (*send) (device_pointer, const void *, size_t);
    int (*pin) (void **, size_t, unsigned);
    int (*unpin) (void *);
    int (*finish) (void);
} cuda_calls;

/* clang-format off */
#define AT(member) offsetof (struct cuda_calls, member)
static const struct symbol cuda_symbols[] = {
    { "cuInit",                      AT (init) },
    { "cuDeviceGetCount",            AT (count) },
    { "cuDeviceGet",                 AT (get) },
    { "cuDeviceGetPCIBusId",         AT (bus) },
    { "cuDevicePrimaryCtxRetain",    AT (retain) },
    { "cuDevicePrimaryCtxRelease",   AT (release) },
    { "cuCtxSetCurrent",             AT (use) },
    { "cuMemGetInfo_v2",             AT (memory) },
    { "cuMemAlloc_v2",               AT (alloc) },
    { "cuMemFree_v2",                AT (free) },
    { "cuMemsetD32_v2",              AT (set) },
    { "cuMemcpyDtoD_v2",             AT (copy) },
    { "cuMemcpyDtoH_v2",             AT (fetch) },
    { "cuMemcpyHtoD_v2",             AT (send) },
    { "cuMemHostAlloc",              AT (pin) },
    { "cuMemFreeHost",               AT (unpin) },
    { "cuCtxSynchronize",            AT (finish) },
    { NULL },
};
/* clang-format on */

enum { SIZE = 256 << 20, ROUNDS = 5, TRIES = 3 };
enum { MEASURED = 16 << 20 }; /* smaller copies are slow on a good GPU, too */

/* Memory for the test of one GPU. */
struct gpu_memory {
    const char *bus;
    device_pointer a, b;
    unsigned *host; /* pinned */
    size_t size;    /* bytes of each */
};

static const unsigned patterns[] = { 0x55555555, 0xaaaaaaaa, 0, 0xffffffff };

/* Write each pattern, copy it on the GPU, and read it back. */
static int compare_patterns (const struct gpu_memory *m, bool *same)
{
    int rv = 0;

    *same = true;
    for (size_t i = 0; rv == 0 && i < sizeof (patterns) / sizeof (*patterns); i++) {
        if ((rv = cuda_calls.set (m->a, patterns[i], m->size / 4)) != 0
            || (rv = cuda_calls.copy (m->b, m->a, m->size)) != 0
            || (rv = cuda_calls.fetch (m->host, m->b, m->size)) != 0)
            return rv;
        for (size_t k = 0; k < m->size / 4; k++)
            *same &= m->host[k] == patterns[i];
    }
    return rv;
}

/* ---- rates ---- */

static int copy_on_gpu (const struct gpu_memory *m)
{
    return cuda_calls.copy (m->b, m->a, m->size);
}

static int fetch_memory (const struct gpu_memory *m)
{
    return cuda_calls.fetch (m->host, m->a, m->size);
}

static int send_back (const struct gpu_memory *m)
{
    return cuda_calls.send (m->a, m->host, m->size);
}

/* clang-format off */
static const struct gpu_rate {
    const char *name; /* as in the table of diagnosis.c */
    int (*once) (const struct gpu_memory *m);
    double bytes;     /* bytes moved per byte of 'size' */
} gpu_rates[] = {
    { "GPU copy",    copy_on_gpu,      2 },
    { "GPU to host", fetch_memory,     1 },
    { "host to GPU", send_back, 1 },
};
/* clang-format on */

static void put_rate (const struct check_place *p, const struct gpu_memory *m, const char *kind,
                      double rate)
{
    char name[64];

    snprintf (name, sizeof (name), "%s %s", kind, m->bus);
    check_fact (p, "rates", name, json_real (rate));
}

static int time_rounds (const struct gpu_memory *m, const struct gpu_rate *r, double *time)
{
    double start;
    int rv = cuda_calls.finish ();

    start = monotonic ();
    for (int i = 0; rv == 0 && i < ROUNDS; i++)
        rv = r->once (m);
    if (rv == 0)
        rv = cuda_calls.finish ();
    *time = fmin (*time, monotonic () - start);
    return rv;
}

/* Report the best of several tries, because other checks use the host's memory at the same time. */
static int measure_copy_rate (const struct check_place *p, const struct gpu_memory *m,
                              const struct gpu_rate *r)
{
    double time = INFINITY;
    int rv = 0;

    for (int i = 0; rv == 0 && i < TRIES; i++)
        rv = time_rounds (m, r, &time);
    if (rv == 0)
        put_rate (p, m, r->name, r->bytes * ROUNDS * (double)m->size / time / 1e9);
    return rv;
}

/* Multiply random matrices: with zeros, a GPU is faster than in any training. */
static int multiply (const struct check_place *p, const struct gpu_memory *m)
{
    struct gpu_product g = { m->a, m->a + m->size / 2, m->b, .finish = cuda_calls.finish };
    int rv;

    for (g.n = PRODUCT_MAX; g.n * g.n * 4 > m->size; g.n /= 2)
        ;
    gpu_product_fill (m->host, m->size);
    if ((rv = cuda_calls.send (m->a, m->host, m->size)) != 0)
        return rv;
    if (gpu_product_measure (&g) == 0)
        put_rate (p, m, "GPU product", g.rate);
    else
        check_finding (p, g.severity, "GPU %s: %s", m->bus, g.why);
    return 0;
}

static int measure_copy_rates (const struct check_place *p, const struct gpu_memory *m)
{
    int rv = 0;

    if (m->size < MEASURED) {
        check_finding (p, SEVERITY_NOTE, "GPU %s: rates not measured: too little free memory",
                       m->bus);
        return 0;
    }
    for (size_t i = 0; rv == 0 && i < sizeof (gpu_rates) / sizeof (*gpu_rates); i++)
        rv = measure_copy_rate (p, m, &gpu_rates[i]);
    return rv != 0 ? rv : multiply (p, m);
}

static int test_gpu_memory (const struct check_place *p, const struct gpu_memory *m)
{
    bool same = true;
    int rv = compare_patterns (m, &same);

    if (rv == 0 && !same)
        check_finding (p, SEVERITY_BAD, "GPU %s: its memory returns wrong data", m->bus);
    return rv != 0 ? rv : measure_copy_rates (p, m);
}

/* Allocate pinned memory, less if the job's limit does not allow so much. */
static int pin_host_memory (struct gpu_memory *m)
{
    int rv;

    while ((rv = cuda_calls.pin ((void **)&m->host, m->size, 0)) != 0 && m->size > 1 << 20)
        m->size /= 2;
    return rv;
}

static int test_memory (const struct check_place *p, const char *bus, size_t size)
{
    struct gpu_memory m = { .bus = bus, .size = size };
    int rv;

    if ((rv = pin_host_memory (&m)) == 0 && (rv = cuda_calls.alloc (&m.a, m.size)) == 0
        && (rv = cuda_calls.alloc (&m.b, m.size)) == 0)
        rv = test_gpu_memory (p, &m);
    if (m.a)
        cuda_calls.free (m.a);
    if (m.b)
        cuda_calls.free (m.b);
    if (m.host)
        cuda_calls.unpin (m.host);
    return rv;
}

static void test_device (const struct check_place *p, int i)
{
    size_t available = 0, total = 0, size = SIZE;
    char bus[32] = "";
    void *context = NULL;
    int device, rv;

    if (cuda_calls.get (&device, i) != 0)
        return;
    if (cuda_calls.bus (bus, sizeof (bus), device) != 0)
        snprintf (bus, sizeof (bus), "number %d", i);
    check_stage (p, "GPU %s", bus);
    if ((rv = cuda_calls.retain (&context, device)) == 0 && (rv = cuda_calls.use (context)) == 0
        && (rv = cuda_calls.memory (&available, &total)) == 0) {
        while (size > 1 << 20 && 3 * size > available)
            size /= 2;
        rv = test_memory (p, bus, size);
    }
    if (rv != 0)
        check_finding (p, SEVERITY_BAD, "GPU %s: cannot compute (CUDA error %d)", bus, rv);
    if (context)
        cuda_calls.release (device);
}

void check_copy (const struct check_place *p)
{
    int n = 0;
    int rv;

    if (gpus_none ())
        return;
    check_stage (p, "the driver");
    if (symbols_load (&cuda_calls, dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), cuda_symbols))
        return;
    if ((rv = cuda_calls.init (0)) != 0 || (rv = cuda_calls.count (&n)) != 0) {
        check_finding (p, SEVERITY_BAD, "GPUs: cannot initialize CUDA (error %d)", rv);
        return;
    }
    for (int i = 0; i < n; i++)
        if (gpu_is_mine (p, i))
            test_device (p, i);
}
