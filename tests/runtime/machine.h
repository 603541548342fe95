/* SPDX-License-Identifier: Apache-2.0 */
/* Unpack the description of a machine (tests/runtime/topology/) into a directory
 * that looks like its root.  Lines:
 *
 *     cpus NODE PACKAGE LIST STRIDE   CPUs c and c + STRIDE share a core; 0: none
 *     nvidia|amd|intel NODE PATH      a GPU; PATH as `lspci -PP` prints it
 *     ib|cxi|net NAME NODE PATH [INTERFACE]
 *     file PATH TEXT
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct machine {
    const char *root;
    int gpus[3], kfd;
};

enum { MACHINE_PATH = 512 };

/* Path below the root, whose directories are created. */
static inline const char *machine_path (const struct machine *t, const char *name)
{
    static char path[MACHINE_PATH];

    snprintf (path, sizeof (path), "%s/%s", t->root, name);
    for (char *s = path + 1; (s = strchr (s, '/')); s++) {
        *s = '\0';
        mkdir (path, 0755);
        *s = '/';
    }
    return path;
}

static inline void machine_file (const struct machine *t, const char *name, const char *text)
{
    FILE *f = fopen (machine_path (t, name), "w");

    if (!f) {
        perror (name);
        exit (1);
    }
    fputs (text, f);
    fclose (f);
}

static inline void machine_number (const struct machine *t, const char *folder, const char *name,
                                   int n)
{
    char path[MACHINE_PATH];
    char text[32];

    snprintf (path, sizeof (path), "%.300s/%s", folder, name);
    snprintf (text, sizeof (text), "%d\n", n);
    machine_file (t, path, text);
}

static inline void machine_link (const struct machine *t, const char *name, int up,
                                 const char *target)
{
    char text[MACHINE_PATH];
    int n = 0;

    while (up--)
        n += snprintf (text + n, sizeof (text) - (size_t)n, "../");
    snprintf (text + n, sizeof (text) - (size_t)n, "%s", target);
    unlink (machine_path (t, name));
    if (symlink (text, machine_path (t, name)) < 0) {
        perror (name);
        exit (1);
    }
}

/* "c0:01.1/c1:00.0" to "devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0" */
static inline void machine_expand (const char *path, char out[MACHINE_PATH])
{
    int n = snprintf (out, MACHINE_PATH, "devices/pci0000:%.2s", path);

    while (*path) {
        int len = (int)strcspn (path, "/");
        n += snprintf (out + n, (size_t)(MACHINE_PATH - n), "/0000:%.*s", len, path);
        path += len + (path[len] == '/');
    }
}

static inline void machine_device (const struct machine *t, const char *pci, int node,
                                   const char *class, const char *vendor)
{
    char path[MACHINE_PATH];

    snprintf (path, sizeof (path), "sys/%.300s", pci);
    machine_number (t, path, "numa_node", node);
    snprintf (path, sizeof (path), "sys/%.300s/class", pci);
    machine_file (t, path, class);
    snprintf (path, sizeof (path), "sys/%.300s/vendor", pci);
    machine_file (t, path, vendor);
}

static inline void machine_cpus (const struct machine *t, const char *line)
{
    char list[64];
    char name[96];
    char text[64];
    int node, package, stride;
    const char *at = list;

    if (sscanf (line, "%d %d %63s %d", &node, &package, list, &stride) != 4)
        exit (2);
    snprintf (name, sizeof (name), "sys/devices/system/node/node%d/cpulist", node);
    machine_file (t, name, list);
    for (int cpu = 0; *at; at += *at == ',') {
        int to;
        char *end;
        cpu = (int)strtol (at, &end, 10);
        to = *end == '-' ? (int)strtol (end + 1, &end, 10) : cpu;
        for (at = end; cpu <= to; cpu++) {
            int first = stride && cpu >= stride ? cpu - stride : cpu;
            snprintf (name, sizeof (name), "sys/devices/system/cpu/cpu%d/topology", cpu);
            machine_number (t, name, "physical_package_id", package);
            strcat (name, "/thread_siblings_list");
            if (stride)
                snprintf (text, sizeof (text), "%d,%d\n", first, first + stride);
            else
                snprintf (text, sizeof (text), "%d\n", cpu);
            machine_file (t, name, text);
        }
    }
    machine_file (t, "sys/devices/system/cpu/smt/active", stride ? "1" : "0");
}

static inline void machine_kfd (struct machine *t, const char *bdf, int gpu)
{
    char path[MACHINE_PATH];
    char text[256];
    unsigned bus, slot, function;

    sscanf (bdf, "0000:%x:%x.%x", &bus, &slot, &function);
    snprintf (path, sizeof (path), "sys/class/kfd/kfd/topology/nodes/%d/properties", t->kfd++);
    snprintf (text, sizeof (text),
              "cpu_cores_count 0\nsimd_count 440\nlocation_id %u\ndomain 0\n"
              "drm_render_minor %d\nunique_id %d\n",
              bus << 8 | slot << 3 | function, 128 + gpu, 0x1000 + gpu);
    machine_file (t, path, text);
}

static inline void machine_gpu (struct machine *t, int vendor, const char *line)
{
    static const struct {
        const char *driver, *class, *id;
    } vendors[] = { { "nvidia", "0x030200\n", "0x10de\n" },
                    { "amdgpu", "0x038000\n", "0x1002\n" },
                    { "i915", "0x030000\n", "0x8086\n" } };
    char path[200], pci[MACHINE_PATH], name[MACHINE_PATH], text[256];
    const char *bdf;
    int node;
    int n = t->gpus[vendor]++;

    if (sscanf (line, "%d %199s", &node, path) != 2)
        exit (2);
    machine_expand (path, pci);
    bdf = strrchr (pci, '/') + 1;
    machine_device (t, pci, node, vendors[vendor].class, vendors[vendor].id);
    snprintf (name, sizeof (name), "sys/bus/pci/drivers/%s/%.32s", vendors[vendor].driver, bdf);
    machine_link (t, name, 4, pci);
    if (vendor == 1)
        machine_kfd (t, bdf, n);
    if (vendor != 0)
        return;
    snprintf (name, sizeof (name), "proc/driver/nvidia/gpus/%.32s/information", bdf);
    snprintf (text, sizeof (text),
              "Model: \t\t modelled\nGPU UUID: \t GPU-%08d-0000-0000-0000-"
              "000000000000\nBus Location: \t %s\nDevice Minor: \t %d\n",
              n, bdf, n);
    machine_file (t, name, text);
    snprintf (name, sizeof (name), "dev/nvidia%d", n);
    machine_file (t, name, "");
}

static inline void machine_nic (const struct machine *t, const char *class, const char *line)
{
    char name[24], path[200], net[24] = "", pci[MACHINE_PATH], link[MACHINE_PATH];
    int node;

    if (sscanf (line, "%23s %d %199s %23s", name, &node, path, net) < 3)
        exit (2);
    machine_expand (path, pci);
    machine_device (t, pci, node, "0x020700\n", "0x15b3\n");
    snprintf (pci + strlen (pci), sizeof (pci) - strlen (pci), "/%s/%s", class, name);
    snprintf (link, sizeof (link), "sys/%.300s/", pci);
    machine_path (t, link);
    snprintf (link, sizeof (link), "sys/class/%s/%s", class, name);
    machine_link (t, link, 2, pci);
    if (!strcmp (class, "infiniband")) {
        snprintf (link, sizeof (link), "sys/class/infiniband/%s/ports/1/state", name);
        machine_file (t, link, "4: ACTIVE\n");
    }
    if (!strcmp (class, "net")) {
        snprintf (link, sizeof (link), "sys/class/net/%s/operstate", name);
        machine_file (t, link, "up\n");
    }
    if (*net) {
        snprintf (link, sizeof (link), "%s %d %s", net, node, path);
        machine_nic (t, "net", link);
    }
}

static inline void machine_line (struct machine *t, char *line)
{
    static const char *const gpus[] = { "nvidia", "amd", "intel" };
    static const char *const nics[][2] = { { "ib", "infiniband" },
                                           { "cxi", "cxi" },
                                           { "net", "net" } };
    char *rest;

    line[strcspn (line, "\n")] = '\0';
    rest = line + strcspn (line, " ");
    if (*line == '#' || !*rest)
        return;
    *rest++ = '\0';
    for (int i = 0; i < 3; i++) {
        if (!strcmp (line, gpus[i]))
            machine_gpu (t, i, rest);
        if (!strcmp (line, nics[i][0]))
            machine_nic (t, nics[i][1], rest);
    }
    if (!strcmp (line, "cpus"))
        machine_cpus (t, rest);
    if (!strcmp (line, "file")) {
        char *text = rest + strcspn (rest, " ");
        *text = '\0';
        machine_file (t, rest, text + 1);
    }
}

static inline void machine_unpack (const char *file, const char *root)
{
    struct machine t = { .root = root };
    char line[512];
    FILE *f = fopen (file, "r");

    if (!f) {
        perror (file);
        exit (1);
    }
    while (fgets (line, sizeof (line), f))
        machine_line (&t, line);
    fclose (f);
}
