/* SPDX-License-Identifier: Apache-2.0 */
/* The sys, proc and dev folders of a machine.  The first 200 bytes also serve as a device list. */
#include "runtime/host/topology.h"
#include "runtime/network/fabric.h"
#include "runtime/network/nccl.h"
#include "tests/fuzz/fuzz.h"

static void look (const struct topology *t, const char *list)
{
    int visible[GPUS_MAX];

    for (int v = 0; v < GPU_VENDORS; v++)
        topology_visible (t, (enum gpu_vendor)v, list, visible);
    for (int g = 0; g < t->gpus; g++)
        for (int n = 0; n < t->nics; n++)
            topology_distance (t->gpu[g].path, t->gpu[g].node, t->nic[n].path, t->nic[n].node);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct fabric f;
    static struct nccl_profile p;
    const char *root = fuzz_files ("machine", data, size, NULL);
    char *text = fuzz_text (data, size < 200 ? size : 200);
    struct cpu_set all = { { 0xffff } };
    struct cpu_set some;
    struct topology *t;
    char line[256];
    char sys[4096];

    cpus_parse (text, &some);
    cpus_parse_hex (text, (int)strlen (text), &some);
    if ((t = topology_open (root, &all)))
        look (t, text);
    topology_close (t);
    memcpy (sys, root, strlen (root) + 1);
    strcat (sys, "/sys");
    fabric_read (sys, &f);
    fabric_text (&f, line, sizeof (line));
    fabric_nccl_choice (&f);
    memset (&p, 0, sizeof (p));
    nccl_defaults (&f, &p);
    free (text);
    return 0;
}
