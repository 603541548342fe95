/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the topology, and placing ranks, on machines in tests/runtime/topology/. */
#include "runtime/host/place.h"
#include "tests/folder.h"
#include "tests/runtime/machine.h"

/* A large machine has a thousand files: unpack it only if it is not there yet. */
static void unpack (const char *name)
{
    static char unpacked[128];
    char wanted[128];
    char file[512];

    snprintf (wanted, sizeof (wanted), "%s:%s", dir, name);
    if (!strcmp (wanted, unpacked))
        return;
    remove_dir (NULL);
    make_dir (NULL);
    snprintf (file, sizeof (file), "%s/%s", MACHINES, name);
    machine_unpack (file, dir);
    snprintf (unpacked, sizeof (unpacked), "%s:%s", dir, name);
}

static struct topology *machine (const char *name, const char *cpus)
{
    struct cpu_set set;

    unpack (name);
    assert_int_equal (cpus_parse (cpus, &set), 0);
    return topology_open (dir, &set);
}

/* ---- sets ---- */

CASE (test_cpus)
{
    static const char *const good[] = {
        "", "0", "0-3", "0-15,128-143", "5,7,9-10", "4095",
    };
    static const char *const bad[] = { "3-1", "4096", "x", "1,,2", "-1" };
    struct cpu_set s;
    char text[64];

    for (size_t i = 0; i < COUNT (good); i++) {
        assert_int_equal (cpus_parse (good[i], &s), 0);
        assert_string_equal (cpus_print (&s, text, sizeof (text)), good[i]);
    }
    for (size_t i = 0; i < COUNT (bad); i++) {
        assert_int_equal (cpus_parse (bad[i], &s), -1);
        assert_int_equal (errno, EINVAL);
        assert_int_equal (cpus_count (&s), 0);
    }
    assert_int_equal (cpus_parse_hex ("0x10000000000000ff,", 18, &s), 0);
    assert_string_equal (cpus_print (&s, text, sizeof (text)), "0-7,60");
    assert_int_equal (cpus_parse_hex ("0xF00000000000000000", 20, &s), 0);
    assert_string_equal (cpus_print (&s, text, sizeof (text)), "68-71");
    assert_int_equal (cpus_parse_hex ("0xg", 3, &s), -1);
    assert_int_equal (cpus_parse_hex ("", 0, &s), -1);
}

/* ---- distances ---- */

CASE (test_distance)
{
    /* clang-format off */
    static const struct {
        const char *a, *b;
        int node_a, node_b;
        enum distance d;
    } rows[] = {
        /* two functions of a device; below one switch; below two levels of switches */
        { "pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:00/0000:00:01.0/0000:01:00.1", 0, 0, DISTANCE_PIX },
        { "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0",
          "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0", 0, 0, DISTANCE_PIX },
        { "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:00.0/0000:15:00.0",
          "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:16:00.0", 0, 0, DISTANCE_PXB },
        { "pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 0, DISTANCE_PHB },
        { "pci0000:3a/0000:3a:00.0/0000:3b:00.0", "pci0000:5d/0000:5d:00.0/0000:5e:00.0", 0, 0, DISTANCE_NODE },
        { "pci0000:3a/0000:3a:00.0/0000:3b:00.0", "pci0000:ae/0000:ae:00.0/0000:af:00.0", 0, 1, DISTANCE_SYS },
        { "pci0000:3a/0000:3a:00.0/0000:3b:00.0", "pci0000:ae/0000:ae:00.0/0000:af:00.0", -1, -1, DISTANCE_SYS },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT (rows); i++) {
        assert_int_equal (topology_distance (rows[i].a, rows[i].node_a, rows[i].b, rows[i].node_b),
                          rows[i].d);
        assert_int_equal (topology_distance (rows[i].b, rows[i].node_b, rows[i].a, rows[i].node_a),
                          rows[i].d);
    }
}

/* ---- reading ---- */

static const char *summary (const struct topology *t)
{
    static char text[512];
    int used = snprintf (text, sizeof (text), "%d nodes;", t->nodes);

    for (int i = 0; i < t->gpus; i++)
        used += snprintf (text + used, sizeof (text) - (size_t)used, " %c%d@%d",
                          "nai"[t->gpu[i].vendor], t -> gpu[i].minor, t->gpu[i].node);
    for (int i = 0; i < t->nics; i++)
        used += snprintf (text + used, sizeof (text) - (size_t)used, " %s%s%s@%d", t->nic[i].name,
                          *t->nic[i].net ? "=" : "", t->nic[i].net, t->nic[i].node);
    return text;
}

FOLDER_CASE (test_machines)
{
    /* clang-format off */
    static const struct {
        const char *name, *summary;
    } rows[] = {
        { "dgx-a100", "8 nodes; n0@3 n1@3 n2@1 n3@1 n4@7 n5@7 n6@5 n7@5"
                      " mlx5_0@3 mlx5_1@3 mlx5_2@1 mlx5_3@1 mlx5_4@0 mlx5_6@7 mlx5_7@7 mlx5_8@5 mlx5_9@5 mlx5_10@4" },
        { "dgx-h100", "2 nodes; n0@0 n1@0 n2@0 n3@0 n4@1 n5@1 n6@1 n7@1"
                      " mlx5_0@0 mlx5_1@0 mlx5_3@0 mlx5_4@0 mlx5_5@0 mlx5_6@1 mlx5_7@1 mlx5_9@1 mlx5_10@1 mlx5_11@1"
                      " eth0=eth0@0" },
        { "hgx-h100", "2 nodes; n0@0 n1@0 n2@0 n3@0 n4@1 n5@1 n6@1 n7@1 mlx5_0=ens0@1"
                      " mlx5_1@1 mlx5_2@1 mlx5_3@1 mlx5_4@1 mlx5_5@0 mlx5_6@0 mlx5_7@0 mlx5_8@0" },
        { "mi250x", "4 nodes; a128@3 a129@3 a130@1 a131@1 a132@0 a133@0 a134@2 a135@2"
                    " cxi0=hsn0@0 cxi1=hsn1@1 cxi2=hsn2@2 cxi3=hsn3@3" },
        { "pcie-4gpu", "2 nodes; n0@0 n1@0 n2@1 n3@1 mlx5_0=ib0@0 eno1=eno1@0" },
        { "laptop", "1 nodes; n0@0 i-1@0 wlp2s0=wlp2s0@0" },
        { "no-numa", "2 nodes; n0@1 n1@0 n2@-1 n3@-1" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT (rows); i++) {
        struct topology *t = machine (rows[i].name, "0-255");
        assert_non_null (t);
        assert_string_equal (summary (t), rows[i].summary);
        topology_close (t);
    }
}

FOLDER_CASE (test_absent)
{
    struct cpu_set none = { { 0 } };
    struct topology *t = topology_open (dir, &none);

    assert_non_null (t);
    assert_string_equal (summary (t), "0 nodes;");
    topology_close (t);
    assert_null (topology_open (in_dir ("absent"), &none));
    topology_close (NULL);
}

/* GPUs are in the order of ROCm's kfd, not of bus numbers.  The kfd hides what
 * the device cgroup denies.
 */
FOLDER_CASE (test_rocm_order)
{
    const struct machine tree = { .root = dir };
    struct topology *t;
    char name[64];
    char text[128];

    topology_close (machine ("mi250x", "0-127"));
    for (int i = 0; i < 8; i++) {
        snprintf (name, sizeof (name), "sys/class/kfd/kfd/topology/nodes/%d/properties", i);
        unlink (in_dir (name));
        snprintf (text, sizeof (text), "simd_count 440\ndomain 0\nlocation_id %d\n",
                  i == 0 ? 0xd600 : 0xd100);
        if (i < 2)
            machine_file (&tree, name, text);
    }
    t = topology_open (dir, &(struct cpu_set){ { 0 } });
    assert_non_null (t);
    assert_string_equal (strrchr (t->gpu[0].path, '/'), "/0000:d6:00.0");
    assert_string_equal (strrchr (t->gpu[1].path, '/'), "/0000:d1:00.0");
    assert_true (t->gpu[0].reachable && t->gpu[1].reachable);
    assert_false (t->gpu[2].reachable);
    topology_close (t);
}

/* Names that only start like an address are ignored.  Only 511 bytes of a
 * link's target are read, so it may be cut within an address.
 */
FOLDER_CASE (test_addresses)
{
    static const char *const names[] = {
        "0000:zz:02.0", "0000:00x02.0", "0000:00:02", "0000:00:02_0", "0000",
    };
    char target[512] = "../../devices/pci0000:00";
    char name[96];
    struct topology *t;

    topology_close (machine ("laptop", "0-7"));
    for (size_t i = 0; i < COUNT (names); i++) {
        snprintf (name, sizeof (name), "sys/bus/pci/drivers/i915/%s", names[i]);
        assert_int_equal (symlink ("../../../../devices/pci0000:00/0000:00:02.0", in_dir (name)),
                          0);
    }
    while (strlen (target) + 13 < 506)
        strcat (target, "/0000:00:02.0");
    while (strlen (target) < 506)
        strcat (target, "/");
    strcat (target, "0000:");
    assert_int_equal (strlen (target), 511);
    assert_int_equal (symlink (target, in_dir ("sys/class/net/long0")), 0);
    t = machine ("laptop", "0-7");
    assert_non_null (t);
    assert_string_equal (summary (t), "1 nodes; n0@0 i-1@0 wlp2s0=wlp2s0@0");
    topology_close (t);
}

/* ---- visible GPUs ---- */

FOLDER_CASE (test_visible)
{
    static const struct {
        const char *list, *found;
    } rows[] = {
        { "0,1,2,3", "0 1 2 3 " },
        { "3,1", "3 1 " },
        { "GPU-00000002-0000-0000-0000-000000000000,GPU-00000000", "2 0 " },
        { "gpu-00000002", "" },
        { "0,4,1", "0 " },
        { "0,-1,1", "0 " },
        { "NoDevFiles", "" },
        { "", "" },
        { "MIG-GPU-00000001-0000-0000-0000-000000000000/7/0", "1 " },
        { "MIG-6a7ba0b4-5f2b-5b36-9e0e-5f8b5a0c0001,MIG-x", "-1 -1 " },
    };
    struct topology *t = machine ("pcie-4gpu", "0-31");
    int visible[GPUS_MAX];
    char text[256];

    for (size_t i = 0; i < COUNT (rows); i++) {
        int n = topology_visible (t, GPU_NVIDIA, rows[i].list, visible);
        int used = 0;
        *text = '\0';
        for (int k = 0; k < n; k++)
            used += sprintf (text + used, "%d ", visible[k]);
        assert_string_equal (text, rows[i].found);
    }
    topology_close (t);
    unlink (in_dir ("dev/nvidia0")); /* as with a device cgroup */
    unlink (in_dir ("dev/nvidia1"));
    t = topology_open (dir, &(struct cpu_set){ { 0 } });
    assert_int_equal (topology_visible (t, GPU_NVIDIA, "0,1", visible), 2);
    assert_int_equal (visible[0], 2);
    assert_int_equal (visible[1], 3);
    topology_close (t);
}

/* ---- placement ---- */

struct row {
    const char *name, *cpus;
    enum placement placement;
    int ranks, devices; /* the first 'devices' GPUs are visible */
    const char *home;   /* "1010": one digit per rank; '-': unknown */
    const char *places;
};

/* Print for each rank devices=CPUs@adapter:distance, and '!' if they are far. */
static void describe (const struct topology *t, const struct place_request *r, char *text)
{
    struct place p;
    char cpus[256];
    struct cpu_set all = { { 0 } };
    int cores = 0;

    for (int i = 0; i < r->local_size; i++) {
        struct place_request one = *r;
        one.local_rank = i;
        assert_int_equal (place_rank (t, &one, &p), 0);
        text += sprintf (text, "%s", i ? " " : "");
        for (int k = 0; k < p.count; k++)
            text += sprintf (text, "%s%d", k ? "," : "", r->visible[p.order[p.first + k]]);
        text += sprintf (text, "=%s", cpus_print (&p.cpus, cpus, sizeof (cpus)));
        if (p.nic >= 0)
            text += sprintf (text, "@%s:%s", t->nic[p.nic].name, distance_names[p.nic_distance]);
        text += sprintf (text, "%s", p.far ? "!" : "");
        if (cpus_meet (&all, &p.cpus))
            cores = -1;
        for (int c = 0; c < CPUS_MAX; c++)
            if (cpus_has (&p.cpus, c)) {
                assert_true (cpus_has (&r->cpus, c));
                cpus_add (&all, c);
            }
    }
    if (cores < 0)
        sprintf (text, " (shared)");
}

static void run (const struct row *row)
{
    struct topology *t = machine (row->name, row->cpus);
    struct place_request r = { .placement = row->placement,
                               .local_size = row->ranks,
                               .devices = row->devices };
    int visible[GPUS_MAX];
    int16_t home[16];
    char text[2048];

    for (int i = 0; i < row->devices; i++)
        visible[i] = i;
    r.visible = visible;
    cpus_parse (row->cpus, &r.cpus);
    for (int i = 0; row->home && i < row->ranks; i++)
        home[i] = (int16_t)(row->home[i] == '-' ? -1 : row->home[i] - '0');
    r.home = row->home ? home : NULL;
    describe (t, &r, text);
    if (strcmp (text, row->places) != 0)
        print_error ("# %s, placement %d, %d ranks, %d devices, CPUs %s\n", row->name,
                     (int)row->placement, row->ranks, row->devices, row->cpus);
    assert_string_equal (text, row->places);
    topology_close (t);
}

/* clang-format off */
static const struct row places[] = {
    { "dgx-a100", "0-255", PLACE_CLOSEST, 8, 8, NULL,
      "0=48-55,176-183@mlx5_0:PXB 1=56-63,184-191@mlx5_1:PXB 2=16-23,144-151@mlx5_2:PXB 3=24-31,152-159@mlx5_3:PXB 4=112-119,240-247@mlx5_6:PXB 5=120-127,248-255@mlx5_7:PXB 6=80-87,208-215@mlx5_8:PXB 7=88-95,216-223@mlx5_9:PXB" },
    { "dgx-a100", "0-255", PLACE_SOCKET, 8, 8, NULL,
      "0=0-7,48-55,128-135,176-183@mlx5_0:PXB 1=8-15,56-63,136-143,184-191@mlx5_1:PXB 2=16-23,32-39,144-151,160-167@mlx5_2:PXB 3=24-31,40-47,152-159,168-175@mlx5_3:PXB 4=64-71,112-119,192-199,240-247@mlx5_6:PXB 5=72-79,120-127,200-207,248-255@mlx5_7:PXB 6=80-87,96-103,208-215,224-231@mlx5_8:PXB 7=88-95,104-111,216-223,232-239@mlx5_9:PXB" },
    { "dgx-a100", "0-255", PLACE_CLOSEST, 1, 8, NULL,
      "0,1,2,3,4,5,6,7=0-255@mlx5_0:PXB" },
    { "dgx-a100", "0-255", PLACE_SPREAD, 4, 8, NULL,
      "2,3=16-31,144-159@mlx5_2:PXB 6,7=80-95,208-223@mlx5_8:PXB 0,1=48-63,176-191@mlx5_0:PXB 4,5=112-127,240-255@mlx5_6:PXB" },
    { "dgx-a100", "0-255", PLACE_CLOSEST, 8, 0, NULL,
      "=0-15,128-143@mlx5_4:NODE =16-31,144-159@mlx5_3:NODE =32-47,160-175@mlx5_2:SYS =48-63,176-191@mlx5_1:NODE =64-79,192-207@mlx5_10:NODE =80-95,208-223@mlx5_9:NODE =96-111,224-239@mlx5_7:SYS =112-127,240-255@mlx5_7:NODE" },
    { "dgx-a100", "16-31", PLACE_CLOSEST, 4, 4, NULL,
      "0=16-19@mlx5_0:PXB! 1=20-23@mlx5_1:PXB! 2=24-27@mlx5_2:PXB 3=28-31@mlx5_3:PXB" },
    { "dgx-h100", "0-223", PLACE_CLOSEST, 8, 8, NULL,
      "0=0-13,112-125@mlx5_0:PXB 1=14-27,126-139@mlx5_3:PXB 2=28-41,140-153@mlx5_4:PXB 3=42-55,154-167@mlx5_5:PXB 4=56-69,168-181@mlx5_6:PXB 5=70-83,182-195@mlx5_9:PXB 6=84-97,196-209@mlx5_10:PXB 7=98-111,210-223@mlx5_11:PXB" },
    { "dgx-h100", "0-223", PLACE_SPREAD, 2, 8, NULL,
      "0,1,2,3=0-55,112-167@mlx5_0:PXB 4,5,6,7=56-111,168-223@mlx5_6:PXB" },
    { "dgx-h100", "0-7,112-119", PLACE_CLOSEST, 4, 4, NULL,
      "0=0-1,112-113@mlx5_0:PXB 1=2-3,114-115@mlx5_3:PXB 2=4-5,116-117@mlx5_4:PXB 3=6-7,118-119@mlx5_5:PXB" },
    { "dgx-h100", "56-63", PLACE_CLOSEST, 2, 2, NULL,
      "0=56-59@mlx5_0:PXB! 1=60-63@mlx5_3:PXB!" },
    { "hgx-h100", "0-159", PLACE_CLOSEST, 8, 8, NULL,
      "0=0-19@mlx5_8:PIX 1=20-39@mlx5_7:PIX 2=40-59@mlx5_6:PIX 3=60-79@mlx5_5:PIX 4=80-99@mlx5_4:PIX 5=100-119@mlx5_3:PIX 6=120-139@mlx5_2:PIX 7=140-159@mlx5_1:PIX" },
    { "hgx-h100", "0-159", PLACE_CLOSEST, 4, 8, NULL,
      "0,1=0-39@mlx5_8:PIX 2,3=40-79@mlx5_6:PIX 4,5=80-119@mlx5_4:PIX 6,7=120-159@mlx5_2:PIX" },
    { "hgx-h100", "0-159", PLACE_NONE, 2, 8, NULL,
      "0,1,2,3=@mlx5_8:PIX 4,5,6,7=@mlx5_4:PIX" },
    { "mi250x", "0-127", PLACE_CLOSEST, 8, 8, NULL,
      "0=48-55,112-119@cxi3:PIX 1=56-63,120-127@cxi3:PIX 2=16-23,80-87@cxi1:PIX 3=24-31,88-95@cxi1:PIX 4=0-7,64-71@cxi0:PIX 5=8-15,72-79@cxi0:PIX 6=32-39,96-103@cxi2:PIX 7=40-47,104-111@cxi2:PIX" },
    { "mi250x", "1-7,9-15,17-23,25-31,33-39,41-47,49-55,57-63", PLACE_CLOSEST, 8, 8, NULL,
      "0=49-55@cxi3:PIX 1=57-63@cxi3:PIX 2=17-23@cxi1:PIX 3=25-31@cxi1:PIX 4=1-7@cxi0:PIX 5=9-15@cxi0:PIX 6=33-39@cxi2:PIX 7=41-47@cxi2:PIX" },
    { "mi250x", "0-127", PLACE_CLOSEST, 8, 8, "00112233",
      "4=@cxi0:PIX 5=@cxi0:PIX 2=@cxi1:PIX 3=@cxi1:PIX 6=@cxi2:PIX 7=@cxi2:PIX 0=@cxi3:PIX 1=@cxi3:PIX" },
    { "mi250x", "0-127", PLACE_CLOSEST, 8, 8, "33110022",
      "0=@cxi3:PIX 1=@cxi3:PIX 2=@cxi1:PIX 3=@cxi1:PIX 4=@cxi0:PIX 5=@cxi0:PIX 6=@cxi2:PIX 7=@cxi2:PIX" },
    { "mi250x", "0-127", PLACE_CLOSEST, 4, 4, "33--",
      "0=@cxi3:PIX 1=@cxi3:PIX 2=@cxi1:PIX 3=@cxi1:PIX" },
    { "pcie-4gpu", "0-31", PLACE_CLOSEST, 4, 4, NULL,
      "0=0,2,4,6,16,18,20,22@mlx5_0:NODE 1=8,10,12,14,24,26,28,30@mlx5_0:PHB 2=1,3,5,7,17,19,21,23@mlx5_0:SYS 3=9,11,13,15,25,27,29,31@mlx5_0:SYS" },
    { "pcie-4gpu", "0-31", PLACE_SPREAD, 2, 4, NULL,
      "0,1=0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30@mlx5_0:NODE 2,3=1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31@mlx5_0:SYS" },
    { "pcie-4gpu", "0-31", PLACE_CLOSEST, 3, 0, NULL,
      "=0,2,4,6,16,18,20,22@mlx5_0:NODE =8,10,12,14,24,26,28,30@mlx5_0:NODE =1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31@mlx5_0:SYS" },
    { "pcie-4gpu", "0-31", PLACE_CLOSEST, 4, 2, NULL,
      "0=0,2,16,18@mlx5_0:NODE 1=4,6,20,22@mlx5_0:PHB 0=8,10,24,26@mlx5_0:NODE 1=12,14,28,30@mlx5_0:PHB" },
    { "pcie-4gpu", "0-31", PLACE_SPREAD, 3, 0, NULL,
      "=0,2,4,6,16,18,20,22@mlx5_0:NODE =1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31@mlx5_0:SYS =8,10,12,14,24,26,28,30@mlx5_0:NODE" },
    { "laptop", "0-7", PLACE_CLOSEST, 1, 1, NULL,
      "0=0-7" },
    { "laptop", "0-7", PLACE_CLOSEST, 3, 1, NULL,
      "0=0,4 0=1,5 0=2-3,6-7" },
    { "laptop", "0-1", PLACE_CLOSEST, 3, 0, NULL,
      "=0 =1 =0 (shared)" },
    { "no-numa", "0-15", PLACE_CLOSEST, 4, 4, NULL,
      "0=8-11 1=0-3 2=4-7 3=12-15" },
    { "no-numa", "0-15", PLACE_CLOSEST, 1, 2, NULL,
      "0,1=0-15" },
    { "no-numa", "0-15", PLACE_SPREAD, 4, 4, NULL,
      "1=0-3 0=8-11 2=4-7 3=12-15" },
};
/* clang-format on */

FOLDER_CASE (test_places)
{
    for (size_t i = 0; i < COUNT (places); i++)
        run (&places[i]);
}

FOLDER_CASE (test_bad_requests)
{
    struct topology *t = machine ("laptop", "0-7");
    struct place_request r = { .local_size = 2, .local_rank = 2 };
    struct place p;

    assert_int_equal (place_rank (t, &r, &p), -1);
    assert_int_equal (errno, EINVAL);
    r.local_size = LOCAL_RANKS_MAX + 1;
    assert_int_equal (place_rank (t, &r, &p), -1);
    topology_close (t);
}

RUN_CASES ()
