/* SPDX-License-Identifier: Apache-2.0 */
/* Check memory, network, kernel log and AMD GPUs of a node. */
#include "launcher/node/checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/network/fabric.h"

/* MiB: below that ranks of a node that use NCCL die of a bus error. */
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
        check_finding (p, SEVERITY_WARN, "memory: %lld of %lld MiB are free", free >> 10,
                       total >> 10);
    check_stage (p, "/dev/shm");
    if (statvfs ("/dev/shm", &s) < 0) {
        check_finding (p, SEVERITY_WARN, "/dev/shm: %s", strerror (errno));
        return;
    }
    mib = (unsigned long long)s.f_bavail * s.f_frsize >> 20;
    if (mib < 512)
        check_finding (p, mib < SHM_LEAST ? SEVERITY_BAD : SEVERITY_WARN,
                       "/dev/shm: %llu MiB are free; NCCL and data loaders use "
                       "it",
                       mib);
}

/* The best of several copies of 256 MiB, on one core. */
void check_bandwidth (const struct check_place *p)
{
    enum { SIZE = 256 << 20, ROUNDS = 5 };
    char *from = malloc (SIZE), *to = malloc (SIZE);
    double best = 0;

    for (int i = 0; from && to && i < ROUNDS; i++) {
        double start, rate;
        memset (from, i + 1, SIZE);
        start = monotonic ();
        memcpy (to, from, SIZE);
        rate = 2.0 * SIZE / (monotonic () - start) / 1e9;
        if (to[(size_t)i * 1000] != i + 1)
            check_finding (p, SEVERITY_BAD, "memory: a copy differs");
        if (i > 0 && rate > best)
            best = rate;
    }
    if (best > 0)
        check_fact (p, "rates", "memory", json_real (best));
    free (from);
    free (to);
}

/* A port that is down or slower than others of its kind, on a machine that
 * has such a fabric; why is one of fabric.h's words.
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
            check_finding (p, SEVERITY_WARN, "network: %s port %d is not used: %s",
                           f->ports[i].name, f->ports[i].number, f->ports[i].unused);
    check_fact (p, "network", "ports", json_integer (used));
    snprintf (text, sizeof (text), "%d", used);
    check_fact (p, "versions", "network ports in use:", json_string (text));
    check_fact (p, "versions", "fabric", json_string (fabric_names[f->kind]));
}

/* By the kernel's own word: /sys may be that of another network name space.
 * Returns how many interfaces are in use.
 */
static int look_at_links (const struct check_place *p)
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
            check_finding (p, SEVERITY_WARN, "network: %s is up, and without a carrier",
                           i->ifa_name);
    }
    freeifaddrs (list);
    snprintf (text, sizeof (text), "%d", used);
    check_fact (p, "versions", "IP interfaces in use:", json_string (text));
    return used;
}

void check_network (const struct check_place *p)
{
    struct fabric *f = calloc (1, sizeof (*f));
    int usable;

    if (!f)
        return;
    check_stage (p, "/sys");
    fabric_read ("/sys", f);
    look_at_ports (p, f);
    usable = look_at_links (p);
    if (usable == 0 && environment_number ("SLURM_STEP_NUM_NODES", 1) > 1)
        check_finding (p, SEVERITY_WARN, "network: no IP interface that reaches other nodes is up");
    free (f);
}

/* The driver's events that are faults of the hardware; the others are
 * mistakes of programs.
 */
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
            check_finding (p, SEVERITY_WARN, "GPU %s: Xid %d in the kernel's log, since boot", bus,
                           xid);
        at++;
    }
}

void check_kernel (const struct check_place *p)
{
    enum { READ_ALL = 3, SIZE_OF = 10 };
    int size = klogctl (SIZE_OF, NULL, 0);
    char *log = size > 0 ? calloc (1, (size_t)size + 1) : NULL;

    if (access ("/proc/driver/nvidia/version", F_OK) < 0) {
        free (log);
        return;
    }
    if (log && klogctl (READ_ALL, log, size) >= 0)
        look_for_xid (p, log);
    else
        check_finding (p, SEVERITY_NOTE,
                       "Xid events were not looked for: the kernel's log is not "
                       "readable for users");
    free (log);
}

/* "ue: 0" among the lines of a block's error counts. */
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

static long number_in (const char *folder, const char *name)
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
        if (number_in (folder, "vendor") != 0x1002)
            continue;
        check_stage (p, "%s", e->d_name);
        if ((errors = uncorrected (folder)) > 0)
            check_finding (p, SEVERITY_BAD, "%s: %ld uncorrected memory errors", e->d_name, errors);
        if (number_in (folder, "gpu_busy_percent") > 10)
            check_finding (p, SEVERITY_WARN, "%s: it is busy", e->d_name);
    }
    if (dir)
        closedir (dir);
}
