/* SPDX-License-Identifier: Apache-2.0 */
/* Read adapters and interfaces from sysfs and choose among them. */
#include "runtime/network/fabric.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 512, TEXT_SIZE = 128, LOOPBACK = 772, IPOIB = 32 };

const char *const fabric_names[FABRIC_KINDS] = {
    [FABRIC_TCP] = "tcp",   [FABRIC_INFINIBAND] = "infiniband",
    [FABRIC_ROCE] = "roce", [FABRIC_SLINGSHOT] = "slingshot",
    [FABRIC_EFA] = "efa",
};

/* Name prefixes of interfaces of containers, virtual machines and overlays. sysfs
 * does not tell the veth that is a container's only way out from those of a host's
 * own containers.
 */
static const char *const virtual_names[] = {
    "docker",       "virbr",  "veth",  "br-", "cni",       "cali", "flannel", "podman", "lxcbr",
    "lxdbr",        "tunl",   "dummy", "ifb", "kube-ipvs", "vnet", "tap",     "tun",    "wg",
    "nodelocaldns", "cilium", "vxlan", "sit", "ip6tnl",    "gre",  "usb",     "idrac",  NULL,
};

/* ---- sysfs ---- */

/* The first line of a file below root, or "". */
static const char *first_line (char line[static TEXT_SIZE], const char *root, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
static const char *first_line (char line[static TEXT_SIZE], const char *root, const char *fmt, ...)
{
    char path[PATH_SIZE];
    va_list ap;
    int n = snprintf (path, sizeof (path), "%s/", root);
    int fd;

    *line = '\0';
    if (n < 0 || n >= (int)sizeof (path))
        return line;
    va_start (ap, fmt);
    vsnprintf (path + n, sizeof (path) - (size_t)n, fmt, ap);
    va_end (ap);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return line;
    n = (int)read (fd, line, TEXT_SIZE - 1);
    close (fd);
    line[n > 0 ? n : 0] = '\0';
    line[strcspn (line, "\n")] = '\0';
    return line;
}

static bool has_member (const char *root, const char *class, const char *name, const char *member)
{
    char path[PATH_SIZE];

    return snprintf (path, sizeof (path), "%s/class/%s/%s/%s", root, class, name, member)
               < (int)sizeof (path)
           && access (path, F_OK) == 0;
}

static int compare_devices (const void *a, const void *b)
{
    return strverscmp (a, b);
}

/* List the names in a folder in natural order.  Returns their number. */
static int list_device_names (const char *root, const char *folder,
                              char names[static FABRIC_MAX][FABRIC_NAME])
{
    char path[PATH_SIZE];
    struct dirent *e;
    DIR *d;
    int n = 0;

    if (snprintf (path, sizeof (path), "%s/%s", root, folder) >= (int)sizeof (path)
        || !(d = opendir (path)))
        return 0;
    while (n < FABRIC_MAX && (e = readdir (d)))
        if (*e->d_name != '.' && strlen (e->d_name) < FABRIC_NAME)
            memcpy (names[n++], e->d_name, strlen (e->d_name) + 1);
    closedir (d);
    qsort (names, (size_t)n, FABRIC_NAME, compare_devices);
    return n;
}

static int positive (const char *text)
{
    long n = strtol (text, NULL, 10);

    return n > 0 && n < INT_MAX ? (int)n : 0;
}

/* ---- adapters ---- */

static bool is_efa (const char *root, const char *hca)
{
    char path[PATH_SIZE];
    char line[TEXT_SIZE];
    char link[TEXT_SIZE];
    ssize_t n;

    snprintf (path, sizeof (path), "%s/class/infiniband/%s/device/driver", root, hca);
    n = readlink (path, link, sizeof (link) - 1);
    link[n > 0 ? n : 0] = '\0';
    return !strcmp (strrchr (link, '/') ? strrchr (link, '/') + 1 : link, "efa")
           || !strcmp (first_line (line, root, "class/infiniband/%s/device/vendor", hca), "0x1d0f");
}

static void read_port (const char *root, const char *hca, const char *number, struct fabric_port *p)
{
    char line[TEXT_SIZE];

    snprintf (p->name, sizeof (p->name), "%s", hca);
    p->number = positive (number);
    first_line (line, root, "class/infiniband/%s/ports/%s/link_layer", hca, number);
    p->kind = is_efa (root, hca)             ? FABRIC_EFA
              : !strcmp (line, "InfiniBand") ? FABRIC_INFINIBAND
                                             : FABRIC_ROCE;
    p->rate = positive (first_line (line, root, "class/infiniband/%s/ports/%s/rate", hca, number));
    first_line (line, root, "class/infiniband/%s/node_type", hca);
    if (*line == '4')
        p->unused = "iWARP";
    else if (!has_member (root, "infiniband", hca, "device"))
        p->unused = "software";
    else if (*first_line (line, root, "class/infiniband/%s/ports/%s/state", hca, number) != '4')
        p->unused = "down";
}

static void read_infiniband (const char *root, struct fabric *f)
{
    char hcas[FABRIC_MAX][FABRIC_NAME];
    char ports[FABRIC_MAX][FABRIC_NAME];
    char folder[TEXT_SIZE];
    int n = list_device_names (root, "class/infiniband", hcas);

    for (int i = 0; i < n; i++) {
        snprintf (folder, sizeof (folder), "class/infiniband/%s/ports", hcas[i]);
        int m = list_device_names (root, folder, ports);
        for (int j = 0; j < m && f->nports < FABRIC_MAX; j++)
            read_port (root, hcas[i], ports[j], &f->ports[f->nports++]);
    }
}

/* A Slingshot adapter has the state and speed of its interface. */
static void read_cxi (const char *root, struct fabric *f)
{
    char names[FABRIC_MAX][FABRIC_NAME];
    char nets[FABRIC_MAX][FABRIC_NAME];
    char text[TEXT_SIZE];
    int n = list_device_names (root, "class/cxi", names);

    for (int i = 0; i < n && f->nports < FABRIC_MAX; i++) {
        struct fabric_port *p = &f->ports[f->nports++];
        snprintf (p->name, sizeof (p->name), "%s", names[i]);
        p->kind = FABRIC_SLINGSHOT;
        p->number = 1;
        snprintf (text, sizeof (text), "class/cxi/%s/device/net", names[i]);
        if (list_device_names (root, text, nets) == 0)
            continue;
        if (!strcmp (first_line (text, root, "class/net/%s/operstate", nets[0]), "down"))
            p->unused = "down";
        p->rate = positive (first_line (text, root, "class/net/%s/speed", nets[0])) / 1000;
    }
}

static void choose_kind (struct fabric *f)
{
    int fastest[FABRIC_KINDS] = { 0 };
    long total[FABRIC_KINDS] = { 0 };

    for (struct fabric_port *p = f->ports; p < f->ports + f->nports; p++)
        if (!p->unused && p->rate > fastest[p->kind])
            fastest[p->kind] = p->rate;
    for (struct fabric_port *p = f->ports; p < f->ports + f->nports; p++)
        if (!p->unused && p->rate < fastest[p->kind])
            p->unused = "slower";
        else if (!p->unused)
            total[p->kind] += p->rate + 1;
    f->kind = total[FABRIC_SLINGSHOT]                         ? FABRIC_SLINGSHOT
              : total[FABRIC_EFA]                             ? FABRIC_EFA
              : total[FABRIC_ROCE] > total[FABRIC_INFINIBAND] ? FABRIC_ROCE
              : total[FABRIC_INFINIBAND]                      ? FABRIC_INFINIBAND
                                                              : FABRIC_TCP;
    for (struct fabric_port *p = f->ports; p < f->ports + f->nports; p++)
        if (!p->unused && p->kind != f->kind)
            p->unused = fabric_names[p->kind];
}

/* ---- interfaces ---- */

static bool begins_with (const char *name, const char *prefix)
{
    return !strncmp (name, prefix, strlen (prefix));
}

bool fabric_is_virtual (const char *name)
{
    for (const char *const *v = virtual_names; *v; v++)
        if (begins_with (name, *v))
            return true;
    return false;
}

static void read_interface (const char *root, struct fabric_interface *i)
{
    char line[TEXT_SIZE];
    int type = positive (first_line (line, root, "class/net/%s/type", i->name));

    i->index = positive (first_line (line, root, "class/net/%s/ifindex", i->name));
    i->speed = positive (first_line (line, root, "class/net/%s/speed", i->name));
    i->is_ib = type == IPOIB;
    first_line (line, root, "class/net/%s/flags", i->name);
    if (type == LOOPBACK)
        i->unused = "loopback";
    else if (*line && !(strtoul (line, NULL, 16) & 1))
        i->unused = "down";
    else if (fabric_is_virtual (i->name))
        i->unused = "virtual";
    else if (has_member (root, "net", i->name, "master"))
        i->unused = "part of another";
    first_line (line, root, "class/net/%s/operstate", i->name);
    if (!i->unused && *line && strcmp (line, "up") && strcmp (line, "unknown"))
        i->unused = "down";
}

static int by_index (const void *a, const void *b)
{
    const struct fabric_interface *x = a;
    const struct fabric_interface *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

/* Skip other files in class/net, such as bonding_masters. */
static void read_interfaces (const char *root, struct fabric *f)
{
    char names[FABRIC_MAX][FABRIC_NAME];
    int n = list_device_names (root, "class/net", names);

    for (int i = 0; i < n; i++)
        if (has_member (root, "net", names[i], "type")) {
            struct fabric_interface *to = &f->interfaces[f->ninterfaces++];
            memcpy (to->name, names[i], FABRIC_NAME);
            read_interface (root, to);
        }
    qsort (f->interfaces, (size_t)f->ninterfaces, sizeof (*f->interfaces), by_index);
}

void fabric_read (const char *root, struct fabric *f)
{
    memset (f, 0, sizeof (*f));
    read_cxi (root, f);
    read_infiniband (root, f);
    read_interfaces (root, f);
    choose_kind (f);
}

const struct fabric_interface *fabric_nccl_choice (const struct fabric *f)
{
    const struct fabric_interface *best = NULL;

    for (int k = 0; k < f->ninterfaces; k++) {
        const struct fabric_interface *i = &f->interfaces[k];
        if (i->unused && strcmp (i->unused, "virtual"))
            continue;
        if (begins_with (i->name, "ib"))
            return i;
        if (!best && !begins_with (i->name, "docker") && !begins_with (i->name, "lo")
            && !begins_with (i->name, "virbr"))
            best = i;
    }
    return best;
}

/* ---- a description in one line ---- */

struct text {
    char *buf;
    size_t size, used;
};

static void append_format (struct text *t, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
static void append_format (struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start (ap, fmt);
    n = vsnprintf (t->buf + t->used, t->size - t->used, fmt, ap);
    va_end (ap);
    if (n > 0)
        t->used += (size_t)n < t->size - t->used ? (size_t)n : t->size - t->used - 1;
}

static void add_ports (const struct fabric *f, struct text *t, bool unused)
{
    const char *space = "";

    for (const struct fabric_port *p = f->ports; p < f->ports + f->nports; p++)
        if (!p->unused == !unused) {
            append_format (t, "%s%s", space, p->name);
            if (p->number > 1)
                append_format (t, ":%d", p->number);
            if (unused)
                append_format (t, " (%s)", p->unused);
            space = " ";
        }
}

size_t fabric_text (const struct fabric *f, char *buf, size_t size)
{
    struct text t = { buf, size, 0 };
    int used = 0;
    int rate = 0;

    for (int i = 0; i < f->nports; i++)
        if (!f->ports[i].unused) {
            used++;
            rate = f->ports[i].rate;
        }
    append_format (&t, "%s:", fabric_names[f->kind]);
    if (used > 0 && rate > 0)
        append_format (&t, " %d x %d Gb/s (", used, rate);
    else if (used > 0)
        append_format (&t, " %d (", used);
    add_ports (f, &t, false);
    append_format (&t, "%s", used > 0 ? ")" : " no adapter");
    if (used < f->nports) {
        append_format (&t, ", not ");
        add_ports (f, &t, true);
    }
    append_format (&t, "; IP over");
    used = 0;
    for (int i = 0; i < f->ninterfaces; i++)
        if (!f->interfaces[i].unused) {
            append_format (&t, " %s", f->interfaces[i].name);
            used++;
        }
    append_format (&t, "%s", used ? "" : " nothing");
    return t.used;
}
