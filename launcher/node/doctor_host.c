/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: check this host, and start a step. */
#include "launcher/node/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/proc.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"

enum { FULL = 2 * PATH_MAX, NOFILE = 65536, SHM_GIB = 8, TIMES = 5 };

static bool exists_on_host (const struct site *s, const char *path)
{
    char name[FULL];

    snprintf (name, sizeof (name), "%s%s", s->root, path);
    return access (name, F_OK) == 0;
}

/* Count the entries of a folder, or only those named 'prefix' and a number. */
static int count_folder_entries (const struct site *s, const char *path, const char *prefix)
{
    char name[FULL];
    size_t len = strlen (prefix);
    struct dirent *d;
    DIR *dir;
    int n = 0;

    snprintf (name, sizeof (name), "%s%s", s->root, path);
    if (!(dir = opendir (name)))
        return 0;
    while ((d = readdir (dir)))
        n += *d->d_name != '.' && !strncmp (d->d_name, prefix, len)
             && (!len || isdigit ((unsigned char)d->d_name[len]));
    closedir (dir);
    return n;
}

/* ---- GPUs ---- */

void doctor_gpus (struct site *s)
{
    int cards = count_folder_entries (s, "/proc/driver/nvidia/gpus", "");
    int devices = count_folder_entries (s, "/dev", "nvidia");

    if (!exists_on_host (s, "/proc/driver/nvidia/version"))
        site_report (s, FINE, "/proc/driver/nvidia",
                     exists_on_host (s, "/sys/class/kfd") ? "GPUs of AMD's"
                                                          : "no NVIDIA GPU on this host");
    else if (devices < cards)
        site_report (s, CHANGE, "/dev/nvidia*",
                     "only %d of %d GPUs have a device file, so Slurm cannot allocate the others: "
                     "run nvidia-persistenced or nvidia-modprobe at boot",
                     devices, cards);
    else if (!exists_on_host (s, "/run/nvidia-persistenced/socket"))
        site_report (s, HINT, "/run/nvidia-persistenced/socket",
                     "the persistence daemon does not run, so the first task of a job waits for "
                     "the driver (seconds per GPU): enable nvidia-persistenced");
    else
        site_report (s, FINE, "/dev/nvidia*", "%d GPUs", devices);
}

void doctor_peermem (struct site *s)
{
    if (!exists_on_host (s, "/proc/driver/nvidia/version")
        || count_folder_entries (s, "/sys/class/infiniband", "") == 0)
        return;
    if (exists_on_host (s, "/sys/module/nvidia_peermem")
        || exists_on_host (s, "/sys/module/nv_peer_mem"))
        site_report (s, FINE, "/sys/module/nvidia_peermem", "loaded");
    else
        site_report (s, HINT, "/sys/module/nvidia_peermem",
                     "not loaded: without it, or dma-buf of the open kernel "
                     "modules, data goes through the host's memory: modprobe nvidia_peermem");
}

/* ---- limits of slurmd, which jobs inherit ---- */

static bool is_slurmd (const struct site *s, pid_t pid)
{
    char path[64];
    char *text;
    bool yes;

    snprintf (path, sizeof (path), "/proc/%d/comm", (int)pid);
    text = doctor_read (s->root, path);
    yes = text && !strcmp (text, "slurmd\n");
    free (text);
    return yes;
}

static pid_t find_slurmd (const struct site *s)
{
    char name[FULL];
    DIR *dir;
    pid_t pid;

    snprintf (name, sizeof (name), "%s/proc", s->root);
    if (!(dir = opendir (name)))
        return 0;
    while ((pid = proc_next (dir)) && !is_slurmd (s, pid))
        ;
    closedir (dir);
    return pid;
}

enum { NO_SLURMD = -2, UNLIMITED = -1 };

/* Returns the limit, UNLIMITED, or NO_SLURMD if none runs here. */
static long limit_of_slurmd (const struct site *s, const char *limit, char *where, size_t n)
{
    pid_t pid = find_slurmd (s);
    char path[64];
    char *text;
    char *at;
    long value = NO_SLURMD;

    snprintf (path, sizeof (path), "/proc/%d/limits", (int)pid);
    snprintf (where, n, "slurmd (%s)", path);
    text = pid ? doctor_read (s->root, path) : NULL;
    at = text ? strstr (text, limit) : NULL;
    if (at) {
        at += strlen (limit);
        at += strspn (at, " ");
        value = strncmp (at, "unlimited", 9) ? atol (at) : UNLIMITED;
    }
    free (text);
    return value;
}

void doctor_memlock (struct site *s)
{
    char where[96];
    long n = limit_of_slurmd (s, "Max locked memory", where, sizeof (where));
    bool rdma = count_folder_entries (s, "/sys/class/infiniband", "") > 0;

    if (n == NO_SLURMD)
        return;
    if (n == UNLIMITED)
        site_report (s, FINE, where, "unlimited");
    else
        site_report (s, rdma ? CHANGE : HINT, where,
                     "%ld KiB is too little for RDMA: set LimitMEMLOCK=infinity in slurmd.service",
                     n / 1024);
}

void doctor_nofile (struct site *s)
{
    char where[96];
    long n = limit_of_slurmd (s, "Max open files", where, sizeof (where));

    if (n == NO_SLURMD)
        return;
    if (n == UNLIMITED || n >= NOFILE)
        site_report (s, FINE, where, "%ld", n);
    else
        site_report (
            s, n < 4096 ? CHANGE : HINT, where,
            "%ld is low for many ranks and data loaders: set LimitNOFILE=131072 in slurmd.service",
            n);
}

/* ---- shared memory ---- */

/* Find the line of /proc/mounts whose second word is 'folder'. */
static bool find_mount (const char *mounts, const char *folder, char *line, size_t size)
{
    size_t len = strlen (folder);

    while (mounts && *mounts) {
        size_t whole = strcspn (mounts, "\n");
        const char *path = mounts + strcspn (mounts, " \n");
        if (*path == ' ' && !strncmp (path + 1, folder, len) && path[1 + len] == ' ') {
            snprintf (line, size, "%.*s", (int)whole, mounts);
            return true;
        }
        mounts += whole + (mounts[whole] == '\n');
    }
    return false;
}

/* Get the size from the mount option "size=65536k", or else from statvfs().  -1: unknown. */
static double shm_gib (const struct site *s)
{
    char *mounts = doctor_read (s->root, "/proc/mounts");
    char line[512] = "";
    bool mounted = find_mount (mounts, "/dev/shm", line, sizeof (line));
    const char *size = strstr (line, "size=");
    struct statvfs v;

    free (mounts);
    if (size)
        return (double)atol (size + 5) / 1024 / 1024;
    if (mounted && !*s->root && statvfs ("/dev/shm", &v) == 0)
        return (double)v.f_blocks * (double)v.f_frsize / (1 << 30);
    return -1;
}

void doctor_shm (struct site *s)
{
    double gib = shm_gib (s);

    if (gib < 0)
        return;
    if (gib >= SHM_GIB)
        site_report (s, FINE, "/dev/shm", "%.0f GiB", gib);
    else
        site_report (s, CHANGE, "/dev/shm",
                     "%.1f GiB: data loaders and NCCL pass data through it, and "
                     "die of a bus error when it is full: mount it with size=50%%",
                     gib);
}

/* See logind.conf(5), and Troubleshooting in NCCL's manual. */
void doctor_remove_ipc (struct site *s)
{
    static const char path[] = "/etc/systemd/logind.conf";
    struct conf c = { NULL, 0 };
    const struct conf_line *l;

    if (conf_read (&c, s->root, path) < 0)
        return;
    l = conf_find (&c, "RemoveIPC");
    if (l && strcasestr (l->text, "=no"))
        site_report (s, FINE, path, "RemoveIPC=no");
    else
        site_report (s, HINT, path,
                     "logind removes a job's shared memory when its user's last login ends: set "
                     "RemoveIPC=no");
    conf_free (&c);
}

/* ---- names ---- */

static bool line_names_host (const char *line, const char *host)
{
    size_t n = strlen (host);

    for (const char *at = line; (at = strstr (at, host)); at += n)
        if (at > line && isspace ((unsigned char)at[-1])
            && (!at[n] || isspace ((unsigned char)at[n])))
            return true;
    return false;
}

static void compare_hosts (struct site *s, const struct conf *c, const char *host)
{
    size_t before = s->nfindings;
    char where[64];

    for (size_t i = 0; i < c->n; i++) {
        const char *text = c->list[i].text;
        if (strncmp (text, "127.", 4) || !line_names_host (text, host))
            continue;
        snprintf (where, sizeof (where), "/etc/hosts:%d", c->list[i].line);
        site_report (s, CHANGE, where,
                     "%s is %.*s, so other nodes cannot reach programs that listen on the host's "
                     "own name (Gloo): use its real address",
                     host, (int)strcspn (text, " \t"), text);
    }
    if (s->nfindings == before)
        site_report (s, FINE, "/etc/hosts", "%s is not a loopback address", host);
}

/* Gloo listens on the address of the host's own name.  Debian's installer maps that name
 * to an address that no other host can reach.
 */
void doctor_hosts (struct site *s)
{
    struct conf c = { NULL, 0 };
    char *host = doctor_read (s->root, "/proc/sys/kernel/hostname");

    if (host)
        host[strcspn (host, ".\n")] = '\0';
    if (host && *host && conf_read (&c, s->root, "/etc/hosts") == 0)
        compare_hosts (s, &c, host);
    conf_free (&c);
    free (host);
}

/* ---- a step ---- */

static double milliseconds (const char *option)
{
    char said[DOCTOR_TEXT];
    double begun = monotonic ();

    slurm_try (option, "true", said, sizeof (said));
    return 1000 * (monotonic () - begun);
}

/* Alternate the two measurements so that other load on the host affects both. */
static void tell_time (struct site *s)
{
    double off[TIMES];
    double on[TIMES];

    for (int i = 0; i < TIMES; i++) {
        off[i] = milliseconds ("--dl=off");
        on[i] = milliseconds ("--dl=torch");
    }
    qsort (off, TIMES, sizeof (*off), compare_doubles);
    qsort (on, TIMES, sizeof (*on), compare_doubles);
    site_report (s, FINE, "srun --dl=torch",
                 "rank 0 has its variables; srun true takes %.0f ms with --dl=off, "
                 "%.0f ms with --dl=torch (medians of %d)",
                 off[TIMES / 2], on[TIMES / 2], TIMES);
}

void doctor_step (struct site *s)
{
    enum { ROOM = 64 * 1024 };
    char *said;
    int status;

    if (!s->run)
        return;
    said = xmalloc (ROOM);
    status = slurm_try ("--dl=torch", "env", said, ROOM);
    if (status != 0)
        site_report (s, BROKEN, "srun --dl=torch env", "exited with status %d: %.*s", status,
                     (int)strcspn (said, "\n"), said);
    else if (!strstr (said, "\nMASTER_ADDR="))
        site_report (s, BROKEN, "srun --dl=torch env",
                     "the task has no MASTER_ADDR: dl.so is not loaded on the node: "
                     "look for \"spank\" in slurmd's log there");
    else
        tell_time (s);
    free (said);
}
