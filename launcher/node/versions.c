/* SPDX-License-Identifier: Apache-2.0 */
/* Report the versions of software that the ranks must agree on. */
#include "launcher/node/checks.h"

#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "launcher/sys/subprocess.h"
#include "launcher/version.h"

static void version (const struct check_place *p, const char *name, const char *value)
{
    check_fact (p, "versions", name, json_string (value));
}

/* The one that the linker finds; PyTorch's wheels may have another. */
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
    version (p, "NCCL", text);
}

/* The interface by which ranks meet; else the first that is up. */
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
        version (p, "MTU", text);
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
        version (p, rows[i].name, l.rlim_cur == RLIM_INFINITY ? "unlimited" : text);
    }
}

/* What the plugin says of itself: "BUILD ARGUMENTS". */
static void find_plugin (const struct check_place *p)
{
    const char *text = getenv ("DL_PLUGIN");
    const char *space = text ? strchr (text, ' ') : NULL;
    char build[64];

    if (!space)
        return;
    snprintf (build, sizeof (build), "%.*s", (int)(space - text), text);
    version (p, "build of dl.so", build);
    version (p, "arguments of dl.so in plugstack.conf:", space[1] ? space + 1 : "none");
}

void check_versions (const struct check_place *p)
{
    struct utsname u;

    if (uname (&u) == 0)
        version (p, "kernel", u.release);
    version (p, "slurm-dl", DL_VERSION);
    find_plugin (p);
    find_mtu (p);
    find_limits (p);
    check_stage (p, "libnccl.so.2");
    find_nccl (p);
}

/* The program that the user's PATH finds: it is the one that trains.  A
 * torch.py in the folder in which it is called may be anybody's.
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
        version (p, i ? "PyTorch" : "Python", line);
        next = next ?: "";
    }
}
