/* SPDX-License-Identifier: Apache-2.0 */
/* Check a node: its AMD GPUs, kernel, network, memory, software and folders. */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "launcher/node/checks.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"
#include "launcher/version.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/network/fabric.h"

/* MiB.  With less, ranks that use NCCL die of a bus error. */
enum { SHM_LEAST = 32 };

static long long meminfo (const char *name)
{
    FILE *f = fopen ("/proc/meminfo", "re");
    char line[128];
    long long kib = -1;

    while (f && fgets (line, sizeof (line), f))
        if (!strncmp (line, name, strlen (name)))
            kib = atoll (line + strlen (name));
    if (f)
        fclose (f);
    return kib;
}

void check_memory (const struct check_place *p)
{
    long long total = meminfo ("MemTotal:");
    long long free = meminfo ("MemAvailable:");
    struct statvfs s;
    unsigned long long mib;

    if (total > 0 && free >= 0 && free < total / 20)
        check_finding (p, SEVERITY_WARN, "memory: only %lld of %lld MiB free", free >> 10,
                       total >> 10);
    check_stage (p, "/dev/shm");
    if (statvfs ("/dev/shm", &s) < 0) {
        check_finding (p, SEVERITY_WARN, "/dev/shm: %s", strerror (errno));
        return;
    }
    mib = (unsigned long long)s.f_bavail * s.f_frsize >> 20;
    if (mib < 512)
        check_finding (p, mib < SHM_LEAST ? SEVERITY_BAD : SEVERITY_WARN,
                       "/dev/shm: only %llu MiB free; NCCL and data loaders need it", mib);
}

/* Report the fastest of several copies of 256 MiB, on one core. */
void check_bandwidth (const struct check_place *p)
{
    enum { SIZE = 256 << 20, ROUNDS = 5 };
    /* no xmalloc(): a low limit of memory must not end the other checks */
    char *from = malloc (SIZE), *to = malloc (SIZE);
    double best = 0;

    for (int i = 0; from && to && i < ROUNDS; i++) {
        double start, rate;
        memset (from, i + 1, SIZE);
        start = monotonic ();
        memcpy (to, from, SIZE);
        rate = 2.0 * SIZE / (monotonic () - start) / 1e9;
        if (to[(size_t)i * 1000] != i + 1)
            check_finding (p, SEVERITY_BAD, "memory: a copy differs from the original");
        if (i > 0 && rate > best)
            best = rate;
    }
    if (best > 0)
        check_fact (p, "rates", "memory", json_real (best));
    free (from);
    free (to);
}

/* Warn about ports that are unused: those of the fabric in use for any reason that fabric.h lists,
 * and others only if they are down.
 */
static void look_at_ports (const struct check_place *p, const struct fabric *f)
{
    char text[16];
    int used = 0;

    for (int i = 0; i < f->nports; i++)
        used += f->ports[i].kind == f->kind && !f->ports[i].unused;
    for (int i = 0; i < f->nports; i++)
        if (f->ports[i].unused
            && (f->ports[i].kind == f->kind || !strcmp (f->ports[i].unused, "down")))
            check_finding (p, SEVERITY_WARN, "network: %s port %d is unused: %s", f->ports[i].name,
                           f->ports[i].number, f->ports[i].unused);
    check_fact (p, "network", "ports", json_integer (used));
    snprintf (text, sizeof (text), "%d", used);
    check_fact (p, "versions", "network ports in use:", json_string (text));
    check_fact (p, "versions", "fabric", json_string (fabric_names[f->kind]));
}

/* Ask the kernel directly, because /sys may belong to another network namespace.  Returns the
 * number of interfaces in use.
 */
static int check_links (const struct check_place *p)
{
    struct ifaddrs *list = NULL;
    char text[16];
    int used = 0;

    if (getifaddrs (&list) < 0)
        return 0;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET || !(i->ifa_flags & IFF_UP)
            || i->ifa_flags & IFF_LOOPBACK || fabric_is_virtual (i->ifa_name))
            continue;
        if (i->ifa_flags & IFF_RUNNING)
            used++;
        else
            check_finding (p, SEVERITY_WARN, "network: %s is up but has no carrier", i->ifa_name);
    }
    freeifaddrs (list);
    snprintf (text, sizeof (text), "%d", used);
    check_fact (p, "versions", "IP interfaces in use:", json_string (text));
    return used;
}

void check_network (const struct check_place *p)
{
    struct fabric *f = xcalloc (1, sizeof (*f));
    int usable;

    check_stage (p, "/sys");
    fabric_read ("/sys", f);
    look_at_ports (p, f);
    usable = check_links (p);
    if (usable == 0 && environment_number ("SLURM_STEP_NUM_NODES", 1) > 1)
        check_finding (p, SEVERITY_WARN, "network: no IP interface that reaches other nodes is up");
    free (f);
}

/* Whether an event of the NVIDIA driver means a hardware fault, not a bug in a program. */
static bool is_hardware (int xid)
{
    static const int list[] = { 48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120 };

    for (size_t i = 0; i < sizeof (list) / sizeof (*list); i++)
        if (list[i] == xid)
            return true;
    return false;
}

static void look_for_xid (const struct check_place *p, const char *log)
{
    const char *at = log;
    char bus[32];
    int xid;

    while ((at = strstr (at, "NVRM: Xid (PCI:"))) {
        if (sscanf (at, "NVRM: Xid (PCI:%31[0-9a-fA-F:.]): %d", bus, &xid) == 2
            && is_hardware (xid))
            check_finding (p, SEVERITY_WARN, "GPU %s: Xid %d in the kernel's log since boot", bus,
                           xid);
        at++;
    }
}

void check_kernel (const struct check_place *p)
{
    enum { READ_ALL = 3, SIZE_OF = 10 };
    int size = klogctl (SIZE_OF, NULL, 0);
    char *log = size > 0 ? xcalloc (1, (size_t)size + 1) : NULL;

    if (access ("/proc/driver/nvidia/version", F_OK) < 0) {
        free (log);
        return;
    }
    if (log && klogctl (READ_ALL, log, size) >= 0)
        look_for_xid (p, log);
    else
        check_finding (p, SEVERITY_NOTE,
                       "Xid events not checked: users cannot read the kernel's log");
    free (log);
}

/* Sum the uncorrected errors, lines such as "ue: 0", of all blocks. */
static long uncorrected (const char *folder)
{
    static const char *const blocks[] = { "umc", "gfx", "sdma", "mmhub", "xgmi_wafl" };
    char path[PATH_MAX], line[128];
    long sum = 0, n;

    for (size_t i = 0; i < sizeof (blocks) / sizeof (*blocks); i++) {
        FILE *f;
        snprintf (path, sizeof (path), "%s/ras/%s_err_count", folder, blocks[i]);
        if (!(f = fopen (path, "re")))
            continue;
        while (fgets (line, sizeof (line), f))
            if (sscanf (line, "ue: %ld", &n) == 1)
                sum += n;
        fclose (f);
    }
    return sum;
}

static long number_in_file (const char *folder, const char *name)
{
    char path[PATH_MAX];
    long n = -1;
    FILE *f;

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    if (!(f = fopen (path, "re")))
        return -1;
    if (fscanf (f, "%li", &n) != 1)
        n = -1;
    fclose (f);
    return n;
}

void check_amd (const struct check_place *p)
{
    char folder[300];
    struct dirent *e;
    DIR *dir = opendir ("/sys/class/drm");

    while (dir && (e = readdir (dir))) {
        long errors;
        if (strncmp (e->d_name, "card", 4) || strchr (e->d_name, '-'))
            continue;
        snprintf (folder, sizeof (folder), "/sys/class/drm/%s/device", e->d_name);
        if (number_in_file (folder, "vendor") != 0x1002)
            continue;
        check_stage (p, "%s", e->d_name);
        if ((errors = uncorrected (folder)) > 0)
            check_finding (p, SEVERITY_BAD, "%s: %ld uncorrected memory errors", e->d_name, errors);
        if (number_in_file (folder, "gpu_busy_percent") > 10)
            check_finding (p, SEVERITY_WARN, "%s: it is busy", e->d_name);
    }
    if (dir)
        closedir (dir);
}

/* ---- versions of software that ranks must agree on ---- */

static void version_fact (const struct check_place *p, const char *name, const char *value)
{
    check_fact (p, "versions", name, json_string (value));
}

/* Get the version that the dynamic linker finds.  PyTorch's wheels may bring their own. */
static void find_nccl (const struct check_place *p)
{
    void *library = dlopen ("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
    int (*get) (int *);
    char text[32];
    void *f;
    int v = 0;

    if (!library || !(f = dlsym (library, "ncclGetVersion")))
        return;
    memcpy (&get, &f, sizeof (f));
    if (get (&v) != 0)
        return;
    snprintf (text, sizeof (text), "%d.%d.%d", v < 10000 ? v / 1000 : v / 10000,
              v < 10000 ? v % 1000 / 100 : v % 10000 / 100, v % 100);
    version_fact (p, "NCCL", text);
}

/* Get the MTU of Gloo's interface or, if none is set, of the first that is up. */
static void find_mtu (const struct check_place *p)
{
    const char *wanted = getenv ("GLOO_SOCKET_IFNAME");
    struct ifreq r = { .ifr_mtu = 0 };
    struct ifaddrs *list = NULL;
    char text[32];
    int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && getifaddrs (&list) == 0)
        for (const struct ifaddrs *i = list; i && !*r.ifr_name; i = i->ifa_next)
            if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP
                && !(i->ifa_flags & IFF_LOOPBACK) && (!wanted || !strcmp (wanted, i->ifa_name)))
                snprintf (r.ifr_name, sizeof (r.ifr_name), "%s", i->ifa_name);
    freeifaddrs (list);
    if (*r.ifr_name && ioctl (fd, SIOCGIFMTU, &r) == 0) {
        snprintf (text, sizeof (text), "%d", r.ifr_mtu);
        version_fact (p, "MTU", text);
    }
    if (fd >= 0)
        close (fd);
}

static void find_limits (const struct check_place *p)
{
    static const struct {
        const char *name;
        int resource;
    } rows[] = {
        { "limit of open files", RLIMIT_NOFILE }, { "limit of locked memory", RLIMIT_MEMLOCK },
        { "limit of processes", RLIMIT_NPROC },   { "limit of the stack", RLIMIT_STACK },
        { "limit of memory", RLIMIT_AS },
    };
    struct rlimit l;
    char text[32];

    for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++) {
        if (getrlimit ((__rlimit_resource_t)rows[i].resource, &l) < 0)
            continue;
        snprintf (text, sizeof (text), "%llu", (unsigned long long)l.rlim_cur);
        version_fact (p, rows[i].name, l.rlim_cur == RLIM_INFINITY ? "unlimited" : text);
    }
}

/* Parse DL_PLUGIN, which the plugin sets to "BUILD ARGUMENTS". */
static void find_plugin (const struct check_place *p)
{
    const char *text = getenv ("DL_PLUGIN");
    const char *space = text ? strchr (text, ' ') : NULL;
    char build[64];

    if (!space)
        return;
    snprintf (build, sizeof (build), "%.*s", (int)(space - text), text);
    version_fact (p, "build of dl.so", build);
    version_fact (p, "arguments of dl.so in plugstack.conf:", space[1] ? space + 1 : "none");
}

void check_versions (const struct check_place *p)
{
    struct utsname u;

    if (uname (&u) == 0)
        version_fact (p, "kernel", u.release);
    version_fact (p, "slurm-dl", DL_VERSION);
    find_plugin (p);
    find_mtu (p);
    find_limits (p);
    check_stage (p, "libnccl.so.2");
    find_nccl (p);
}

/* Run the python3 in the user's PATH, because training uses it.  Do not import from the current
 * directory: anybody may have put a torch.py there.
 */
void check_python (const struct check_place *p)
{
    static const char program[] = "import sys\n"
                                  "sys.path[:] = [p for p in sys.path if p]\n"
                                  "print(sys.version.split()[0])\n"
                                  "try:\n"
                                  "    import torch\n"
                                  "    print(torch.__version__)\n"
                                  "except ImportError:\n"
                                  "    pass";
    struct command c = { .keeps_job = true, .no_errors = true };
    char text[256];
    char *next = text;

    check_stage (p, "python3");
    command_add (&c, "python3", NULL);
    command_add (&c, "-c", NULL);
    command_add (&c, program, NULL);
    command_run (&c, NULL, text, sizeof (text));
    command_free (&c);
    for (int i = 0; i < 2 && *next; i++) {
        char *line = strsep (&next, "\n");
        version_fact (p, i ? "PyTorch" : "Python", line);
        next = next ?: "";
    }
}

/* ---- the working directory and TMPDIR ---- */

enum { SMALL = 4096, BLOCK = 1 << 20, BLOCKS = 256, FEW_MIB = 100 };

/* Write a file, sync it to disk and remove it.  Returns 0, or -1 with errno. */
static int write_probe_file (const char *folder, long blocks, size_t size)
{
    char path[PATH_MAX];
    char *data = xcalloc (1, size);
    int rv = 0;
    int fd, e;

    snprintf (path, sizeof (path), "%s/.dl-check.XXXXXX", folder);
    fd = mkostemp (path, O_CLOEXEC);
    if (fd < 0) {
        e = errno;
        free (data);
        errno = e;
        return -1;
    }
    for (long i = 0; i < blocks && rv == 0; i++) {
        ssize_t n = write (fd, data, size);
        if (n >= 0 && n < (ssize_t)size)
            errno = ENOSPC;
        rv = n == (ssize_t)size ? 0 : -1;
    }
    if (rv == 0)
        rv = fsync (fd);
    e = errno;
    unlink (path);
    if (close (fd) < 0 && rv == 0) {
        e = errno;
        rv = -1;
    }
    free (data);
    errno = e;
    return rv;
}

static void look_at_space (const struct check_place *p, const char *what, const char *path)
{
    struct statvfs s;
    unsigned long long mib;

    if (statvfs (path, &s) < 0)
        return;
    mib = (unsigned long long)s.f_bavail * s.f_frsize >> 20;
    if (mib < FEW_MIB)
        check_finding (p, SEVERITY_WARN, "%s: only %llu MiB left in %s", what, mib, path);
    if (s.f_files > 0 && s.f_favail < 100)
        check_finding (p, SEVERITY_WARN, "%s: only %llu more files fit into %s", what,
                       (unsigned long long)s.f_favail, path);
}

static bool is_only_closed (int e)
{
    return e == EACCES || e == EROFS || e == EPERM;
}

/* Whether the error is the user's mistake, such as a missing or forbidden TMPDIR, and so the same
 * on all nodes.  A disk that is full, read-only or failing is a fault of the node.
 */
static bool is_users_mistake (int e)
{
    return e == ENOENT || e == EACCES || e == EPERM || e == ENOTDIR || e == ELOOP
           || e == ENAMETOOLONG || e == EDQUOT;
}

static bool is_never (int e)
{
    (void)e;
    return false;
}

static int look_at_folder (const struct check_place *p, const char *what, const char *path,
                           enum severity severity, bool (*is_mild) (int e))
{
    check_stage (p, "%s", path);
    if (write_probe_file (path, 1, SMALL) < 0) {
        check_finding (p, is_mild (errno) ? SEVERITY_WARN : severity,
                       "%s: cannot write in %.100s: %s", what, path, strerror (errno));
        return -1;
    }
    look_at_space (p, what, path);
    return 0;
}

static void measure_write_rate (const struct check_place *p, const char *path)
{
    double start = monotonic ();
    double took;

    if (write_probe_file (path, BLOCKS, BLOCK) < 0)
        return;
    took = monotonic () - start;
    check_fact (p, "rates", "working directory", json_real ((double)BLOCKS * BLOCK / took / 1e9));
}

static bool has_room (const char *path)
{
    struct statvfs s;

    return statvfs (path, &s) == 0
           && (unsigned long long)s.f_bavail * s.f_frsize > 10ull * BLOCKS * BLOCK;
}

void check_directory (const struct check_place *p)
{
    char path[PATH_MAX];

    check_stage (p, "its name");
    if (!getcwd (path, sizeof (path))) {
        check_finding (p, SEVERITY_SHARED, "working directory: %s", strerror (errno));
        return;
    }
    if (look_at_folder (p, "working directory", path, SEVERITY_SHARED, is_only_closed) == 0
        && p->level == LEVEL_FULL && has_room (path))
        measure_write_rate (p, path);
}

void check_temporary (const struct check_place *p)
{
    const char *path = getenv ("TMPDIR");

    if (!path || !*path) {
        look_at_folder (p, "TMPDIR", "/tmp", SEVERITY_BAD, is_never);
        return;
    }
    look_at_folder (p, "TMPDIR", path, SEVERITY_BAD, is_users_mistake);
}
