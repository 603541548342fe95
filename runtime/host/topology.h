/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs, network devices, NUMA nodes and cores of this machine, from sysfs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* This folder: the hardware of this machine, and how its ranks share it.  It uses only libc,
 * because the plugin includes it.
 */

enum {
    CPUS_MAX = 4096,
    GPUS_MAX = 64,
    NICS_MAX = 64,
    NODES_MAX = 64,
    PCI_PATH_MAX = 192,
};

/* ---- sets of CPUs, in the kernel's form ---- */

struct cpu_set {
    uint64_t word[CPUS_MAX / 64];
};

static inline bool cpus_has (const struct cpu_set *s, int cpu)
{
    return s->word[cpu / 64] >> (cpu % 64) & 1;
}

static inline void cpus_add (struct cpu_set *s, int cpu)
{
    s->word[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

int cpus_count (const struct cpu_set *s);
bool cpus_meet (const struct cpu_set *a, const struct cpu_set *b);

/* out = a & b; 'out' may be one of them. */
void cpus_and (struct cpu_set *out, const struct cpu_set *a, const struct cpu_set *b);

/* Read "0-15,128-143".  Returns 0, or -1 with errno EINVAL. */
int cpus_parse (const char *list, struct cpu_set *s);

/* Read "0xff00", the format of SLURM_CPU_BIND_LIST, from 'len' characters. */
int cpus_parse_hex (const char *mask, int len, struct cpu_set *s);

/* Write a list such as "0-15", cut to fit; returns 'buf'. */
char *cpus_print (const struct cpu_set *s, char *buf, int size);

/* ---- the machine ---- */

enum gpu_vendor { GPU_NVIDIA, GPU_AMD, GPU_INTEL, GPU_VENDORS };

struct gpu {
    enum gpu_vendor vendor;
    bool reachable;          /* this process may open it (a device cgroup may forbid it) */
    int minor;               /* of /dev/nvidia* or /dev/dri/renderD* */
    int node;                /* index in topology.node; -1: unknown to the firmware */
    char path[PCI_PATH_MAX]; /* "pci0000:00/0000:00:01.0/0000:01:00.0" */
    char uuid[48];           /* "GPU-..."; "" if unknown */
};

enum nic_kind { NIC_INFINIBAND, NIC_SLINGSHOT, NIC_ETHERNET };

struct nic {
    enum nic_kind kind; /* INFINIBAND: a verbs device, also for RoCE */
    bool up;
    int node;
    char path[PCI_PATH_MAX];
    char name[24]; /* mlx5_0, cxi0, eth0 */
    char net[24];  /* its network interface; "" if none */
};

struct numa_node {
    int id; /* the kernel's number */
    int package;
    struct cpu_set cpus;
};

struct topology {
    int gpus, nics, nodes;
    struct gpu gpu[GPUS_MAX];         /* those of a vendor in the order of its runtime */
    struct nic nic[NICS_MAX];         /* by name */
    struct numa_node node[NODES_MAX]; /* those with CPUs, by id */
    uint16_t core[CPUS_MAX];          /* the first CPU of the same core */
};

/* Read sys, proc and dev below 'root' ("/").  Only the CPUs in 'cpus' are assigned to cores.
 * Missing files are ignored: a machine without sysfs has no devices.  Opens no device.  Returns
 * NULL with errno (ENOMEM, or 'root' is not a folder).
 */
struct topology *topology_open (const char *root, const struct cpu_set *cpus);
void topology_close (struct topology *t);

/* Index of the NUMA node that contains all of 'cpus'; -1 if they are on several. */
int topology_home (const struct topology *t, const struct cpu_set *cpus);

/* The distance between two PCI devices, in the terms of nvidia-smi. */
enum distance {
    DISTANCE_PIX,  /* at most one PCIe switch between them */
    DISTANCE_PXB,  /* several switches, one root port */
    DISTANCE_PHB,  /* one host bridge */
    DISTANCE_NODE, /* one NUMA node */
    DISTANCE_SYS,
};
extern const char *const distance_names[];

enum distance topology_distance (const char *path_a, int node_a, const char *path_b, int node_b);

enum { GPU_UNKNOWN = -1 };

/* Find the devices that a variable such as CUDA_VISIBLE_DEVICES names.  Indices count reachable
 * devices, and UUIDs may be abbreviated.  Writes their indices in t->gpu, or GPU_UNKNOWN for a MIG
 * device with its own UUID.  As in CUDA, an invalid name ends the list.  Returns their
 * number.
 */
int topology_visible (const struct topology *t, enum gpu_vendor vendor, const char *list,
                      int visible[static GPUS_MAX]);
