/* SPDX-License-Identifier: Apache-2.0 */
/* Read the traffic, speed and errors of this node's network interfaces and InfiniBand ports. */
#include "launcher/sys/network_readings.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/proc.h"

enum { NETWORK_TEXT = 16384 };

/* ---- interfaces ---- */

static double interface_speed (int sys, const char *interface)
{
    char path[96];
    double mbit;

    snprintf (path, sizeof (path), "class/net/%.15s/speed", interface);
    mbit = proc_number (sys, path);
    return mbit > 0 ? mbit * 1e6 / 8 : NAN; /* -1: the driver does not know */
}

static void clear_link (struct network_link *l)
{
    *l = (struct network_link){ .speed = NAN, .received = NAN, .sent = NAN, .packets = NAN };
    for (int f = 0; f < NETWORK_FAULTS; f++)
        l->faults[f] = NAN;
}

/* A line is "  eth0: ", 8 numbers of what it received, and 8 of what it sent: bytes, packets,
 * errors, drops, ...
 */
static void read_interface_counters (int sys, char *line, struct network_readings *r)
{
    struct network_link *l = &r->links[r->n];
    char *colon = strchr (line, ':');
    char *name = line + strspn (line, " ");
    double in[4], out[4];

    if (!colon || r->n == NETWORK_LINKS)
        return;
    *colon = '\0';
    if (!strcmp (name, "lo") || strlen (name) > 15
        || sscanf (colon + 1, "%lf %lf %lf %lf %*s %*s %*s %*s %lf %lf %lf %lf", &in[0], &in[1],
                   &in[2], &in[3], &out[0], &out[1], &out[2], &out[3])
               != 8)
        return;
    clear_link (l);
    snprintf (l->name, sizeof (l->name), "%s", name);
    l->received = in[0];
    l->sent = out[0];
    l->packets = in[1] + out[1];
    l->faults[FAULT_ERRORS] = in[2] + out[2];
    l->faults[FAULT_DROPS] = in[3] + out[3];
    l->speed = interface_speed (sys, name);
    r->n++;
}

static void read_all_interfaces (int proc, int sys, struct network_readings *r)
{
    char text[NETWORK_TEXT];
    char *rest = text;
    char *line;

    if (proc_read (proc, "self/net/dev", text, sizeof (text)) < 0)
        return;
    while ((line = strsep (&rest, "\n")))
        read_interface_counters (sys, line, r);
}

/* ---- ports ---- */

static const struct {
    const char *file;
    enum network_fault fault;
} port_faults[] = {
    { "symbol_error", FAULT_SYMBOLS },
    { "link_downed", FAULT_DOWN },
    { "local_link_integrity_errors", FAULT_INTEGRITY },
    { "port_xmit_discards", FAULT_DISCARDS },
};

/* The counters of data count units of four bytes, says the InfiniBand specification. */
static void read_port_counters (int port, const char *device, const char *number, bool faults,
                                struct network_readings *r)
{
    struct network_link *l = &r->links[r->n];
    char path[96];

    clear_link (l);
    l->is_port = true;
    snprintf (l->name, sizeof (l->name), "%.36s/%.7s", device, number);
    l->speed = proc_number (port, "rate") * 1e9 / 8; /* "100 Gb/sec" */
    l->received = proc_number (port, "counters/port_rcv_data") * 4;
    l->sent = proc_number (port, "counters/port_xmit_data") * 4;
    for (size_t i = 0; faults && i < sizeof (port_faults) / sizeof (*port_faults); i++) {
        snprintf (path, sizeof (path), "counters/%s", port_faults[i].file);
        l->faults[port_faults[i].fault] = proc_number (port, path);
    }
    r->n++;
}

static DIR *open_folder_in (int root, const char *path)
{
    int fd = openat (root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir (fd);

    if (!dir && fd >= 0)
        close (fd);
    return dir;
}

static void read_ports_of (int root, const char *device, bool faults, struct network_readings *r)
{
    char path[64];
    struct dirent *e;
    DIR *dir;

    snprintf (path, sizeof (path), "%.36s/ports", device);
    if (!(dir = open_folder_in (root, path)))
        return;
    while ((e = readdir (dir)) && r->n < NETWORK_LINKS) {
        int port;
        if (*e->d_name == '.' || strlen (e->d_name) > 7)
            continue;
        port = openat (dirfd (dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (port < 0)
            continue;
        read_port_counters (port, device, e->d_name, faults, r);
        close (port);
    }
    closedir (dir);
}

static void read_ports (int sys, bool faults, struct network_readings *r)
{
    DIR *dir = open_folder_in (sys, "class/infiniband");
    struct dirent *e;

    if (!dir)
        return;
    while ((e = readdir (dir)))
        if (*e->d_name != '.' && strlen (e->d_name) <= 36)
            read_ports_of (dirfd (dir), e->d_name, faults, r);
    closedir (dir);
}

/* ---- TCP ---- */

/* A file has pairs of lines that begin with the same word: names, and numbers in the same order. */
static void read_pair (int proc, const char *path, const char *word, const char *const *wanted,
                       double *const *values)
{
    char text[NETWORK_TEXT], begin[16];
    char *names, *numbers, *name, *number;

    snprintf (begin, sizeof (begin), "\n%s: ", word);
    *text = '\n';
    if (proc_read (proc, path, text + 1, sizeof (text) - 1) < 0 || !(names = strstr (text, begin))
        || !(numbers = strstr (names + 1, begin)))
        return;
    *numbers++ = '\0';
    numbers[strcspn (numbers, "\n")] = '\0';
    names++;
    while ((name = strsep (&names, " ")) && (number = strsep (&numbers, " ")))
        for (int i = 0; wanted[i]; i++)
            if (!strcmp (name, wanted[i]))
                *values[i] = strtod (number, NULL);
}

static void read_tcp (int proc, struct network_readings *r)
{
    static const char *const basic[] = { "OutSegs", "RetransSegs", "InSegs", NULL };
    static const char *const more[] = { "TCPOFOQueue", NULL };

    r->segments = r->resent = r->received = r->gaps = NAN;
    read_pair (proc, "self/net/snmp", "Tcp", basic,
               (double *[]){ &r->segments, &r->resent, &r->received });
    read_pair (proc, "self/net/netstat", "TcpExt", more, (double *[]){ &r->gaps });
}

void network_read (int proc, int sys, bool faults, struct network_readings *r)
{
    r->n = 0;
    read_all_interfaces (proc, sys, r);
    read_ports (sys, faults, r);
    if (faults)
        read_tcp (proc, r);
}
