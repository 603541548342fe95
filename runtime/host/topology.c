/* SPDX-License-Identifier: Apache-2.0 */
/* Read the devices of a node from sysfs, and find those that a task sees.  Read
 * only links and small files of the devices that matter: a scan of all PCI devices
 * would take milliseconds.
 */
#include "runtime/host/topology.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "runtime/host/sysfs.h"

const char *const distance_names[] = { "PIX", "PXB", "PHB", "NODE", "SYS" };

static int components (const char *path)
{
    int n = 1;

    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* Count the leading components that two paths share. */
static int common_components (const char *a, const char *b)
{
    int n = 0;

    for (;;) {
        size_t m = strcspn (a, "/");
        if (m != strcspn (b, "/") || strncmp (a, b, m) != 0)
            return n;
        n++;
        if (!a[m] || !b[m])
            return n;
        a += m + 1;
        b += m + 1;
    }
}

enum distance topology_distance (const char *path_a, int node_a, const char *path_b, int node_b)
{
    int n = common_components (path_a, path_b);
    /* bridges on both paths below the last one that they share */
    int bridges = components (path_a) + components (path_b) - 2 * (n + 1);

    if (n >= 2)
        return bridges <= 2 ? DISTANCE_PIX : DISTANCE_PXB;
    if (n == 1)
        return DISTANCE_PHB;
    return node_a >= 0 && node_a == node_b ? DISTANCE_NODE : DISTANCE_SYS;
}

static int nth_reachable (const struct topology *t, enum gpu_vendor vendor, long n)
{
    for (int i = 0; i < t->gpus; i++)
        if (t->gpu[i].vendor == vendor && t->gpu[i].reachable && n-- == 0)
            return i;
    return -1;
}

static int by_uuid (const struct topology *t, enum gpu_vendor vendor, const char *name, size_t len)
{
    for (int i = 0; i < t->gpus; i++)
        if (t->gpu[i].vendor == vendor && t->gpu[i].reachable
            && !strncasecmp (t->gpu[i].uuid, name, len))
            return i;
    return -1;
}

enum { NO_DEVICE = -2 };

/* Look up one name from the list.  Returns the index of the GPU, GPU_UNKNOWN, or NO_DEVICE if no
 * device has the name.
 */
static int device_named (const struct topology *t, enum gpu_vendor vendor, const char *name,
                         size_t len)
{
    static const char mig[] = "MIG-";
    static const char gpu[] = "GPU-";
    int found = -1;

    if (len > 8 && !strncmp (name, mig, 4) && !strncmp (name + 4, gpu, 4))
        found = by_uuid (t, vendor, name + 4, strcspn (name + 4, "/,"));
    if (len > 4 && !strncmp (name, mig, 4))
        return found < 0 ? GPU_UNKNOWN : found;
    if (len > 0 && strspn (name, "0123456789") >= len)
        found = nth_reachable (t, vendor, strtol (name, NULL, 10));
    else if (len > 4 && !strncmp (name, gpu, 4))
        found = by_uuid (t, vendor, name, len);
    return found < 0 ? NO_DEVICE : found;
}

int topology_visible (const struct topology *t, enum gpu_vendor vendor, const char *list,
                      int visible[static GPUS_MAX])
{
    int n = 0;

    while (*list && n < GPUS_MAX) {
        size_t len = strcspn (list, ",");
        /* Intel's "0.1" names a tile of device 0 */
        size_t own = vendor == GPU_INTEL ? strcspn (list, ",.") : len;
        int device = device_named (t, vendor, list, own);
        if (device == NO_DEVICE)
            break;
        visible[n++] = device;
        list += len + (list[len] == ',');
    }
    return n;
}

enum { LINE = 4096, BDF = 12 };

static void read_node_row (int root, struct topology *t, const char *name)
{
    struct numa_node *n = &t->node[t->nodes];
    char path[96];
    char list[LINE];

    if (t->nodes == NODES_MAX || strncmp (name, "node", 4) || !isdigit ((unsigned char)name[4]))
        return;
    memset (n, 0, sizeof (*n));
    n->id = atoi (name + 4);
    snprintf (path, sizeof (path), "sys/devices/system/node/node%d/cpulist", n->id);
    /* GPU memory and CXL memory appear as nodes without CPUs */
    if (sysfs_line (root, path, list, sizeof (list)) == 0 && cpus_parse (list, &n->cpus) == 0
        && cpus_count (&n->cpus) > 0)
        t->nodes++;
}

static int first_cpu (const struct cpu_set *s)
{
    int cpu = 0;

    while (cpu < CPUS_MAX - 1 && !cpus_has (s, cpu))
        cpu++;
    return cpu;
}

static int by_numa_id (const void *a, const void *b)
{
    return ((const struct numa_node *)a)->id - ((const struct numa_node *)b)->id;
}

static void read_numa_nodes (int root, struct topology *t)
{
    char path[96];
    char list[LINE];

    sysfs_each (root, "sys/devices/system/node", t, read_node_row);
    if (t->nodes == 0
        && sysfs_line (root, "sys/devices/system/cpu/online", list, sizeof (list)) == 0
        && cpus_parse (list, &t->node[0].cpus) == 0)
        t->nodes = 1; /* a kernel without NUMA */
    qsort (t->node, (size_t)t->nodes, sizeof (*t->node), by_numa_id);
    for (int i = 0; i < t->nodes; i++) {
        snprintf (path, sizeof (path), "sys/devices/system/cpu/cpu%d/topology/physical_package_id",
                  first_cpu (&t->node[i].cpus));
        t->node[i].package = (int)sysfs_number (root, path, 0);
    }
}

static void read_core (int root, struct topology *t, int cpu)
{
    struct cpu_set siblings;
    char path[96];
    char list[256];

    snprintf (path, sizeof (path), "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
              cpu);
    if (sysfs_line (root, path, list, sizeof (list)) < 0 || cpus_parse (list, &siblings) < 0)
        return;
    for (int i = cpu; i < CPUS_MAX; i++)
        if (cpus_has (&siblings, i))
            t->core[i] = (uint16_t)cpu;
}

static void read_cores (int root, struct topology *t, const struct cpu_set *cpus)
{
    for (int i = 0; i < CPUS_MAX; i++)
        t->core[i] = (uint16_t)i;
    if (sysfs_number (root, "sys/devices/system/cpu/smt/active", 1) == 0)
        return; /* each CPU is a core */
    for (int i = 0; i < CPUS_MAX; i++)
        if (cpus_has (cpus, i) && t->core[i] == i)
            read_core (root, t, i);
}

static bool is_bdf (const char *s)
{
    return strspn (s, "0123456789abcdef:.") >= BDF && s[4] == ':' && s[7] == ':' && s[10] == '.';
}

/* From a link such as "../../../devices/pci0000:00/0000:00:01.0/net/eth0", keep the
 * host bridge, the bridges and the device.  Returns 0, or -1 if it is not a PCI
 * device.
 */
static int pci_path (int root, const char *link, char path[PCI_PATH_MAX])
{
    char target[512];
    ssize_t n = readlinkat (root, link, target, sizeof (target) - 1);
    char *from;
    char *end;

    if (n < 0)
        return -1;
    target[n] = '\0';
    from = strstr (target, "devices/pci");
    if (!from)
        return -1;
    from += strlen ("devices/");
    end = from + strcspn (from, "/");
    while (*end == '/' && is_bdf (end + 1))
        end += 1 + strcspn (end + 1, "/");
    if (!memchr (from, '/', (size_t)(end - from)) || end - from >= PCI_PATH_MAX)
        return -1;
    memcpy (path, from, (size_t)(end - from));
    path[end - from] = '\0';
    return 0;
}

static int node_index (const struct topology *t, long id)
{
    for (int i = 0; i < t->nodes; i++)
        if (t->node[i].id == id)
            return i;
    return -1;
}

int topology_home (const struct topology *t, const struct cpu_set *cpus)
{
    int found = -1;

    for (int i = 0; i < t->nodes; i++)
        if (cpus_meet (cpus, &t->node[i].cpus)) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

/* If numa_node is -1, the CPUs that the kernel calls local may still lie in one
 * node.  A machine with a single node leaves no choice.
 */
static int pci_node (int root, const struct topology *t, const char *pci)
{
    struct cpu_set local;
    char path[PCI_PATH_MAX + 40];
    char list[LINE];
    int found;

    snprintf (path, sizeof (path), "sys/devices/%s/numa_node", pci);
    found = node_index (t, sysfs_number (root, path, -1));
    if (found >= 0 || t->nodes == 1)
        return found >= 0 ? found : 0;
    snprintf (path, sizeof (path), "sys/devices/%s/local_cpulist", pci);
    if (sysfs_line (root, path, list, sizeof (list)) < 0 || cpus_parse (list, &local) < 0)
        return -1;
    return topology_home (t, &local);
}

static const char *bdf_of (const char *path)
{
    return strrchr (path, '/') + 1;
}

static const struct {
    const char *drivers[2];
    long pci_vendor;
} vendors[] = {
    [GPU_NVIDIA] = { { "nvidia" }, 0x10de },
    [GPU_AMD] = { { "amdgpu" }, 0x1002 },
    [GPU_INTEL] = { { "i915", "xe" }, 0x8086 },
};

static bool is_gpu (int root, const char *pci, long vendor)
{
    char path[PCI_PATH_MAX + 40];
    long class;

    snprintf (path, sizeof (path), "sys/devices/%s/class", pci);
    class = sysfs_number (root, path, 0) >> 16;
    snprintf (path, sizeof (path), "sys/devices/%s/vendor", pci);
    return (class == 0x03 || class == 0x12) /* display, accelerator */
           && sysfs_number (root, path, 0) == vendor;
}

static void copy_field (char *line, const char *name, char *buf, size_t size)
{
    char *at = strstr (line, name);

    *buf = '\0';
    if (!at)
        return;
    at += strlen (name);
    at += strspn (at, " \t");
    snprintf (buf, size, "%.*s", (int)strcspn (at, "\n"), at);
}

static bool may_open (int root, const char *path)
{
    /* checks the device cgroup too, and does not wake the GPU as open() would */
    return faccessat (root, path, R_OK | W_OK, 0) == 0;
}

static void describe_nvidia (int root, struct gpu *g, int index)
{
    char path[96];
    char text[LINE];
    char minor[16];

    snprintf (path, sizeof (path), "proc/driver/nvidia/gpus/%s/information", bdf_of (g->path));
    g->minor = index;
    if (sysfs_file (root, path, text, sizeof (text)) == 0) {
        copy_field (text, "GPU UUID:", g->uuid, sizeof (g->uuid));
        copy_field (text, "Device Minor:", minor, sizeof (minor));
        if (*minor)
            g->minor = atoi (minor);
        if (strchr (g->uuid, '?')) /* not initialised yet */
            *g->uuid = '\0';
    }
    snprintf (path, sizeof (path), "dev/nvidia%d", g->minor);
    g->reachable = may_open (root, path);
}

static void add_gpu (int root, struct topology *t, const char *link, int vendor)
{
    struct gpu *g = &t->gpu[t->gpus];

    if (t->gpus == GPUS_MAX)
        return;
    memset (g, 0, sizeof (*g));
    if (pci_path (root, link, g->path) < 0 || !is_gpu (root, g->path, vendors[vendor].pci_vendor))
        return;
    g->vendor = (enum gpu_vendor)vendor;
    g->node = pci_node (root, t, g->path);
    g->minor = -1;
    t->gpus++;
}

static int by_bdf (const void *a, const void *b)
{
    return strcmp (bdf_of (((const struct gpu *)a)->path), bdf_of (((const struct gpu *)b)->path));
}

static void add_driver_gpus (int root, struct topology *t, int vendor, int d)
{
    const char *driver = vendors[vendor].drivers[d];
    char path[300];
    int fd = -1;
    DIR *dir;
    struct dirent *e;

    if (!driver)
        return;
    snprintf (path, sizeof (path), "sys/bus/pci/drivers/%s", driver);
    fd = openat (root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir (fd);
    if (!dir) {
        if (fd >= 0)
            close (fd);
        return;
    }
    while ((e = readdir (dir)))
        if (is_bdf (e->d_name)) {
            snprintf (path, sizeof (path), "sys/bus/pci/drivers/%s/%.16s", driver, e->d_name);
            add_gpu (root, t, path, vendor);
        }
    closedir (dir);
}

/* ROCm numbers GPUs in the order of the kernel's kfd, which identifies them by bus
 * number and hides those that the device cgroup forbids.
 */
static unsigned long long property (const char *text, const char *name)
{
    size_t n = strlen (name);

    for (; text; text = strchr (text, '\n')) {
        text += *text == '\n';
        if (!strncmp (text, name, n) && text[n] == ' ')
            return strtoull (text + n, NULL, 10);
    }
    return 0;
}

static void kfd_bdf (const char *text, char *buf, size_t size)
{
    unsigned long long at = property (text, "location_id");

    snprintf (buf, size, "%04x:%02x:%02x.%x", (unsigned)(property (text, "domain") & 0xffff),
              (unsigned)(at >> 8 & 0xff), (unsigned)(at >> 3 & 0x1f), (unsigned)(at & 7));
}

/* Move the GPU of this kfd node to index 'at'.  Returns the next index. */
static int take_kfd (struct gpu *g, int n, int at, const char *text)
{
    char bdf[24];
    struct gpu found;

    kfd_bdf (text, bdf, sizeof (bdf));
    for (int i = at; i < n; i++) {
        if (strcmp (bdf_of (g[i].path), bdf) != 0)
            continue;
        found = g[i];
        memmove (&g[at + 1], &g[at], (size_t)(i - at) * sizeof (*g));
        found.minor = (int)property (text, "drm_render_minor");
        found.reachable = true;
        snprintf (found.uuid, sizeof (found.uuid), "GPU-%016llx", property (text, "unique_id"));
        g[at] = found;
        return at + 1;
    }
    return at;
}

static void describe_amd (int root, struct gpu *g, int n)
{
    char path[96];
    char text[LINE];
    int done = 0;

    for (int i = 0; done < n && i < 2 * GPUS_MAX; i++) {
        snprintf (path, sizeof (path), "sys/class/kfd/kfd/topology/nodes/%d/properties", i);
        if (sysfs_file (root, path, text, sizeof (text)) == 0)
            done = take_kfd (g, n, done, text);
        else if (errno == ENOENT)
            return;
    }
}

static void read_gpu_devices (int root, struct topology *t)
{
    for (int v = 0; v < GPU_VENDORS; v++) {
        struct gpu *g = &t->gpu[t->gpus];
        int before = t->gpus;
        add_driver_gpus (root, t, v, 0);
        add_driver_gpus (root, t, v, 1);
        qsort (g, (size_t)(t->gpus - before), sizeof (*g), by_bdf);
        if (v == GPU_AMD)
            describe_amd (root, g, t->gpus - before);
        for (int i = 0; before + i < t->gpus; i++)
            if (v == GPU_NVIDIA)
                describe_nvidia (root, &g[i], i);
            else if (v == GPU_INTEL)
                g[i].reachable = true;
    }
}

static struct nic *add_nic (int root, struct topology *t, enum nic_kind kind, const char *class,
                            const char *name)
{
    struct nic *n = &t->nic[t->nics];
    char link[128];

    if (t->nics == NICS_MAX || strlen (name) >= sizeof (n->name))
        return NULL;
    memset (n, 0, sizeof (*n));
    snprintf (link, sizeof (link), "sys/class/%s/%s", class, name);
    if (pci_path (root, link, n->path) < 0)
        return NULL; /* virtual */
    n->kind = kind;
    n->node = pci_node (root, t, n->path);
    memcpy (n->name, name, strlen (name) + 1);
    t->nics++;
    return n;
}

static void add_infiniband (int root, struct topology *t, const char *name)
{
    struct nic *n = add_nic (root, t, NIC_INFINIBAND, "infiniband", name);
    char path[128];

    snprintf (path, sizeof (path), "sys/class/infiniband/%s/ports/1/state", name);
    if (n)
        n->up = sysfs_number (root, path, 0) == 4; /* "4: ACTIVE" */
}

static void add_cxi (int root, struct topology *t, const char *name)
{
    struct nic *n = add_nic (root, t, NIC_SLINGSHOT, "cxi", name);

    if (n)
        n->up = true;
}

/* If the device is already listed, record its interface.  Any other device is
 * Ethernet.
 */
static void add_net (int root, struct topology *t, const char *name)
{
    char path[128];
    char state[16];
    struct nic *n = add_nic (root, t, NIC_ETHERNET, "net", name);
    bool up;

    if (!n)
        return;
    snprintf (path, sizeof (path), "sys/class/net/%s/operstate", name);
    sysfs_line (root, path, state, sizeof (state));
    up = !strcmp (state, "up");
    for (int i = 0; i < t->nics - 1; i++)
        if (t->nic[i].kind != NIC_ETHERNET && !strcmp (t->nic[i].path, n->path)) {
            memcpy (t->nic[i].net, n->name, sizeof (n->name));
            if (t->nic[i].kind == NIC_SLINGSHOT)
                t->nic[i].up = up;
            t->nics--;
            return;
        }
    memcpy (n->net, n->name, sizeof (n->name));
    n->up = up;
}

/* Sort mlx5_10 after mlx5_9. */
static int by_nic_name (const void *a, const void *b)
{
    const struct nic *m = a;
    const struct nic *n = b;
    int kind = (int)m->kind - (int)n->kind;

    return kind ? kind : strverscmp (m->name, n->name);
}

static void read_nics (int root, struct topology *t)
{
    sysfs_each (root, "sys/class/infiniband", t, add_infiniband);
    sysfs_each (root, "sys/class/cxi", t, add_cxi);
    sysfs_each (root, "sys/class/net", t, add_net);
    qsort (t->nic, (size_t)t->nics, sizeof (*t->nic), by_nic_name);
}

struct topology *topology_open (const char *root, const struct cpu_set *cpus)
{
    struct topology *t = NULL;
    int fd = open (root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    t = calloc (1, sizeof (*t));
    if (t) {
        read_numa_nodes (fd, t);
        read_cores (fd, t, cpus);
        read_gpu_devices (fd, t);
        read_nics (fd, t);
    }
    close (fd);
    return t;
}

void topology_close (struct topology *t)
{
    free (t);
}
