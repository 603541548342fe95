/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics from descriptions in tests/runtime/fabric/, profiles, and the lint of
 * a user's variables.
 */
#include "runtime/network/nccl.c"
#include "runtime/network/fabric.h"
#include "tests/runtime/fabric.h"

CASE (trees)
{
    static const char *const names[] = { "infiniband",  "roce-bond",  "slingshot", "efa",
                                         "tcp-overlay", "no-manager", "none" };
    struct fabric f;

    for (size_t i = 0; i < COUNT (names); i++) {
        print_message ("# %s\n", names[i]);
        read_tree (names[i], &f, 1);
    }
}

CASE (short_line)
{
    struct fabric f;
    char whole[512];
    char text[512];

    read_tree ("infiniband", &f, 0);
    fabric_text (&f, whole, sizeof (whole));
    for (size_t size = 1; size < sizeof (text); size++) {
        memset (text, 'x', sizeof (text));
        size_t n = fabric_text (&f, text, size);
        assert_int_equal (n, strlen (text));
        assert_true (strlen (text) < size);
        assert_int_equal (strncmp (text, whole, strlen (text)), 0);
    }
}

/* More adapters and interfaces, and longer names, than there is room for. */
CASE (many)
{
    struct fabric f;
    char name[16];

    remove_tree ();
    for (int i = 0; i < FABRIC_MAX + 5; i++) {
        snprintf (name, sizeof (name), "mlx5_%d", i);
        put_port (name, "InfiniBand", "4:ACTIVE", "100");
        put ("1", "class/net/eth%d/type", i);
    }
    put ("1", "class/net/%0200d/type", 1);
    fabric_read (root, &f);
    assert_int_equal (f.nports, FABRIC_MAX);
    assert_in_range (f.ninterfaces, FABRIC_MAX - 1, FABRIC_MAX);
    assert_int_equal (f.kind, FABRIC_TCP);
}

/* ---- profiles ---- */

struct said {
    char text[2048];
};

static void note (void *arg, const char *line)
{
    struct said *s = arg;
    size_t n = strlen (s->text);

    snprintf (s->text + n, sizeof (s->text) - n, "%s\n", line);
}

/* clang-format off */
static const struct {
    const char *text, *set, *said;
} profiles[] = {
    { "NCCL_DEBUG=WARN\n", "NCCL_DEBUG=WARN|", "" },
    { "# x\n\n  NCCL_NET = \"AWS Libfabric\" \r\n", "NCCL_NET=AWS Libfabric|", "" },
    { "NCCL_IB_HCA==mlx5_0,mlx5_1", "NCCL_IB_HCA==mlx5_0,mlx5_1|", "" },
    { "NCCL_SOCKET_IFNAME=", "NCCL_SOCKET_IFNAME=|", "" },
    { "UCX_NET_DEVICES=mlx5_0:1\nOMPI_MCA_pml=ucx\nFI_PROVIDER=efa\n", "UCX_NET_DEVICES=mlx5_0:1|OMPI_MCA_pml=ucx|FI_PROVIDER=efa|", "" },
    { "NCCL_ALGO=Ring\nNCCL_IB_TC=1\n", "NCCL_IB_TC=1|", "f:1: NCCL_ALGO: for debugging only, by NVIDIA's manual\n" },
    { "\nLD_PRELOAD=x\n", "", "f:2: LD_PRELOAD: no variable that a profile may set\n" },
    { "PATH=/x\n=y\n", "", "f:1: PATH: no variable that a profile may set\nf:2: no variable that a profile may set\n" },
    { "NCCL_TIMEOUT=1\n", "", "f:1: NCCL_TIMEOUT: NCCL has no time-out; torch's is an argument of init_process_group()\n" },
    { "NCCL_DEBUG\n", "", "f:1: no NAME=VALUE\n" },
    { "export NCCL_DEBUG=WARN\n", "", "f:1: export NCCL_DEBUG: no variable that a profile may set\n" },
    { "NCCL_IB_TIMOUT=22\n", "", "f:1: NCCL_IB_TIMOUT: no variable that a profile may set; did you mean NCCL_IB_TIMEOUT?\n" },
    { "UCX_NET_DEVICE=mlx5_0:1\n", "", "f:1: UCX_NET_DEVICE: no variable that a profile may set; did you mean UCX_NET_DEVICES?\n" },
    { "NCCL_IB_TC=high\n", "", "f:1: NCCL_IB_TC: must be a number from -1 to 255\n" },
    { "NCCL_IB_TIMEOUT=32\nNCCL_IB_RETRY_CNT=0x7\n", "NCCL_IB_RETRY_CNT=0x7|", "f:1: NCCL_IB_TIMEOUT: must be a number from 0 to 31\n" },
    { "NCCL_DEBUG=WARNING\n", "", "f:1: NCCL_DEBUG: must be VERSION or WARN or INFO or ABORT or TRACE or NONE\n" },
    { "NCCL_SOCKET_FAMILY=af_inet6\nNCCL_IB_SL=\n", "NCCL_SOCKET_FAMILY=af_inet6|NCCL_IB_SL=|", "" },
    { "UCX_IB_GID_INDEX=auto\nUCX_MAX_RNDV_RAILS=0\n", "UCX_IB_GID_INDEX=auto|", "f:2: UCX_MAX_RNDV_RAILS: must be a number from 1 on\n" },
    { "UCX_IB_TRAFFIC_CLASS=x\n", "", "f:1: UCX_IB_TRAFFIC_CLASS: must be a number from 0 to 255 or auto\n" },
    { "NCCL_IB_TC=1\nNCCL_IB_TC=2\n", "NCCL_IB_TC=1|", "f:2: NCCL_IB_TC: set a second time\n" },
    { "NCCL_IB_TC=\033[2J\n", "", "f:1: a byte that is not printable ASCII\n" },
    { "N\303\234=1\n", "", "f:1: a byte that is not printable ASCII\n" },
    { "", "", "" },
};

static const struct {
    const char *name;
    int rv;
} names[] = {
    { "auto", 0 }, { "h100-ib_2.conf", 0 }, { "", -1 }, { ".", -1 }, { "..", -1 }, { "a/b", -1 }, { "../x", -1 },
    { "a b", -1 }, { "a\n", -1 }, { "\303\234", -1 }, { "12345678901234567890123456789012", 0 },
    { "123456789012345678901234567890123", -1 },
};
/* clang-format on */

CASE (check_names)
{
    for (size_t i = 0; i < COUNT (names); i++)
        assert_int_equal (nccl_check_name (names[i].name), names[i].rv);
}

CASE (parsing)
{
    for (size_t i = 0; i < COUNT (profiles); i++) {
        struct nccl_profile p = { .n = 0 };
        struct said s = { "" };
        char set[512] = "";

        parse_profile (profiles[i].text, strlen (profiles[i].text), "f", &p, note, &s);
        for (int k = 0; k < p.n; k++)
            snprintf (set + strlen (set), sizeof (set) - strlen (set), "%s=%s|", p.settings[k].name,
                      p.settings[k].value);
        assert_string_equal (set, profiles[i].set);
        assert_string_equal (s.text, profiles[i].said);
    }
}

CASE (long_ones)
{
    struct nccl_profile p = { .n = 0 };
    struct said s = { "" };
    char text[512] = "NCCL_IB_HCA=";

    memset (text + 12, 'a', NCCL_VALUE - 1);
    assert_int_equal (parse_profile (text, strlen (text), "f", &p, note, &s), 0);
    assert_int_equal (strlen (p.settings[0].value), NCCL_VALUE - 1);
    p.n = 0;
    strcat (text, "a");
    assert_int_equal (parse_profile (text, strlen (text), "f", &p, note, &s), 1);
    assert_int_equal (p.n, 0);
    assert_string_equal (s.text, "f:1: too long\n");
}

static void check_accepted (const struct nccl_profile *p)
{
    assert_in_range (p->n, 0, NCCL_SETTINGS);
    for (int i = 0; i < p->n; i++) {
        const struct nccl_variable *v = nccl_find (p->settings[i].name);
        assert_non_null (v);
        assert_int_equal (v->class, NCCL_SYSTEM);
        for (const char *c = p->settings[i].value; *c; c++)
            assert_in_range (*c, ' ', '~');
    }
}

/* For any bytes, the parser accepts only printable settings of the system's
 * class.  Sanitizers check the rest.
 */
CASE (fuzz)
{
    static const char seed[] = "# a\nNCCL_IB_HCA==mlx5_0\nNCCL_ALGO=Ring\n"
                               "UCX_IB_SL=\"3\"\n\nNCCL_NET=AWS Libfabric\n";
    uint64_t x = 1;

    for (int round = 0; round < 20000; round++) {
        char text[sizeof (seed)];
        struct nccl_profile p = { .n = 0 };
        struct said s = { "" };
        size_t n = sizeof (seed) - 1;
        memcpy (text, seed, sizeof (seed));
        for (int k = 0; k < 8; k++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            if (x >> 63)
                text[(x >> 33) % n] = (char)(x >> 20);
            else if (round % 7 == 0)
                n = 1 + (x >> 33) % n;
        }
        parse_profile (text, n, "f", &p, note, &s);
        check_accepted (&p);
    }
}

CASE (files)
{
    struct nccl_profile p = { .n = 0 };
    char path[256];
    FILE *f;

    snprintf (path, sizeof (path), "%s/big", root);
    f = fopen (path, "w");
    assert_non_null (f);
    for (int i = 0; i <= NCCL_PROFILE_BYTES; i++)
        fputc ('\n', f);
    fclose (f);
    assert_int_equal (nccl_read (path, &p, NULL, NULL), -1);
    assert_int_equal (errno, EFBIG);
    assert_int_equal (truncate (path, NCCL_PROFILE_BYTES), 0);
    assert_int_equal (nccl_read (path, &p, NULL, NULL), 0);
    /* anyone who can write the profile decides what NCCL loads */
    assert_int_equal (chmod (path, 0646), 0);
    assert_int_equal (nccl_read (path, &p, NULL, NULL), -1);
    assert_int_equal (errno, EPERM);
    assert_int_equal (chmod (path, 0664), 0);
    assert_int_equal (nccl_read (path, &p, NULL, NULL), -1);
    assert_int_equal (errno, EPERM);
    assert_int_equal (nccl_read (root, &p, NULL, NULL), -1);
    assert_int_equal (errno, EINVAL);
    snprintf (path, sizeof (path), "%s/fifo", root);
    assert_int_equal (mkfifo (path, 0600), 0);
    assert_int_equal (nccl_read (path, &p, NULL, NULL), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (nccl_read ("/nonexistent", &p, NULL, NULL), -1);
    assert_int_equal (errno, ENOENT);
}

static void uncomment (char *text)
{
    for (char *p = text; *p; p += strcspn (p, "\n"), p += *p == '\n')
        if (*p == '#' && p[1] >= 'A' && p[1] <= 'Z')
            *p = ' ';
}

/* The shipped profiles are valid, even with their commented settings enabled. */
CASE (examples)
{
    for (int k = 0; k < FABRIC_KINDS; k++) {
        struct nccl_profile p = { .n = 0 };
        struct said s = { "" };
        char path[512];
        char text[NCCL_PROFILE_BYTES] = "";
        size_t n;
        FILE *f;

        snprintf (path, sizeof (path), "%s/etc/nccl/%s.conf", getenv ("srcdir"), fabric_names[k]);
        assert_int_equal (nccl_read (path, &p, note, &s), 0);
        assert_string_equal (s.text, "");
        assert_true (p.n > 0);
        f = fopen (path, "r");
        assert_non_null (f);
        n = fread (text, 1, sizeof (text) - 1, f);
        fclose (f);
        uncomment (text);
        parse_profile (text, n, fabric_names[k], &p, note, &s);
        check_accepted (&p);
        assert_null (strstr (s.text, "no variable"));
        assert_null (strstr (s.text, "debugging"));
    }
}

/* A profile does not repeat what nccl.conf sets. */
CASE (configured)
{
    static const struct fabric f = { .kind = FABRIC_TCP };
    struct nccl_profile all, rest;
    struct said said = { "" };
    char conf[512];
    FILE *file;

    snprintf (conf, sizeof (conf), "%s/nccl.conf", root);
    nccl_choose ("/nonexistent", conf, "auto", &f, &all, note, &said);
    assert_true (all.n > 0);
    file = fopen (conf, "w");
    fprintf (file, "%s=%s\n", all.settings[0].name, all.settings[0].value);
    fclose (file);
    nccl_choose ("/nonexistent", conf, "auto", &f, &rest, note, &said);
    unlink (conf);
    assert_string_equal (said.text, "");
    assert_int_equal (rest.n, all.n - 1);
    for (int i = 0; i < rest.n; i++)
        assert_string_equal (rest.settings[i].name, all.settings[i + 1].name);
}

/* ---- lint ---- */

/* clang-format off */
static const struct {
    const char *tree, *env, *line; /* the line starts with this; NULL: no line */
} lints[] = {
    { "infiniband", "NCCL_IB_DISABLE=1",            "NCCL_IB_DISABLE=1: this node has a fabric" },
    { "infiniband", "NCCL_IB_DISABLE=0",            NULL },
    { "tcp-overlay", "NCCL_IB_DISABLE=1",           NULL },
    { "infiniband", "NCCL_NET=Socket",              "NCCL_NET=Socket: this node has a fabric" },
    { "tcp-overlay", "NCCL_NET=Socket",             NULL },
    { "slingshot",  "NCCL_NET=IB",                  "NCCL_NET=IB: " },
    { "slingshot",  "NCCL_NET=AWS Libfabric",       NULL },
    { "infiniband", "NCCL_SOCKET_IFNAME=eth0",      "NCCL_SOCKET_IFNAME=eth0: this node has no such interface" },
    { "infiniband", "NCCL_SOCKET_IFNAME=eth0,eno",  NULL },
    { "infiniband", "NCCL_SOCKET_IFNAME==eno",      "NCCL_SOCKET_IFNAME==eno: " },
    { "infiniband", "NCCL_SOCKET_IFNAME==eno3",     NULL },
    { "infiniband", "NCCL_SOCKET_IFNAME=^docker",   NULL },
    { "none",       "NCCL_SOCKET_IFNAME=eth0",      NULL },
    { "infiniband", "GLOO_SOCKET_IFNAME=eno",       "GLOO_SOCKET_IFNAME=eno: " },
    { "infiniband", "GLOO_SOCKET_IFNAME=eno3",      NULL },
    { "infiniband", "NCCL_IB_HCA=mlx5_0:1",         NULL },
    { "infiniband", "NCCL_IB_HCA==mlx5_77",         "NCCL_IB_HCA==mlx5_77: this node has no such adapter" },
    { "infiniband", "UCX_NET_DEVICES=mlx5_0:1",     NULL },
    { "infiniband", "UCX_NET_DEVICES=mlx4_0:1",     "UCX_NET_DEVICES=mlx4_0:1: " },
    { "infiniband", "UCX_NET_DEVICES=all",          NULL },
    { "infiniband", "UCX_TLS=tcp,cuda_copy",        "UCX_TLS=tcp,cuda_copy: " },
    { "infiniband", "UCX_TLS=rc,tcp",               NULL },
    { "infiniband", "UCX_TLS=^tcp",                 NULL },
    { "infiniband", "OMPI_MCA_btl=openib,self",     "OMPI_MCA_btl=openib,self: " },
    { "infiniband", "OMPI_MCA_btl=^openib",         NULL },
    { "tcp-overlay", "OMPI_MCA_btl_tcp_if_include=10.0.0.0/8", NULL },
    { "tcp-overlay", "NCCL_P2P_DISABLE=1",          "NCCL_P2P_DISABLE=1: GPUs of a node" },
    { "tcp-overlay", "NCCL_P2P_DISABLE=0",          NULL },
    { "roce-bond",  "NCCL_IB_GID_INDEX=3",          "NCCL_IB_GID_INDEX=3: " },
    { "roce-bond",  "NCCL_IB_GID_INDEX=-1",         NULL },
    { "none",       "NCCL_TIMEOUT=1800",            "NCCL_TIMEOUT has no effect: " },
    { "none",       "NCCL_ASYNC_ERROR_HANDLING=1",  "NCCL_ASYNC_ERROR_HANDLING has no effect: the name is TORCH_" },
    { "none",       "NCCL_IB_TIMOUT=22",            "NCCL_IB_TIMOUT: NCCL has no such variable; did you mean NCCL_IB_TIMEOUT?" },
    { "none",       "NCCL_IB_TIMEOUT=long",         "NCCL_IB_TIMEOUT=long: must be a number from 0 to 31" },
    { "none",       "NCCL_IB_TIMEOUT=22",           NULL },
    { "none",       "NCCL_HURRY=1",                 "NCCL_HURRY: NCCL has no such variable" },
    { "none",       "NCCL_ALGO=Ring",               "NCCL_ALGO is for debugging only: " },
    { "none",       "NCCL_PROTO=LL128",             "NCCL_PROTO is for debugging only: can corrupt data" },
    { "none",       "NCCL_NET_GDR_LEVEL=5",         "NCCL_NET_GDR_LEVEL is for debugging only: " },
    { "none",       "NCCL_DEBUG=TRACE",             "NCCL_DEBUG=TRACE is for debugging only" },
    { "none",       "NCCL_DEBUG=INFO",              NULL },
    { "none",       "NCCL_GDRCOPY_ENABLE=1",        NULL },
    { "none",       "NCCL_RAS_ADDR=localhost:9",    NULL },
    { "none",       "NCCL_VERSION=2.18.5-1",        NULL },
    { "none",       "NCCL_HOME=/opt/nccl",          NULL },
    { "none",       "UCX_LOG_LEVEL=info",           NULL },
    { "none",       "UCX_RNDV_THRESH=8k",           NULL },
    { "none",       "UCX_NTE_DEVICES=x",            "UCX_NTE_DEVICES: UCX has no such variable" },
    { "none",       "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", NULL },
    { "none",       "NCCL_",                        "NCCL_: NCCL has no such variable" },
    { "none",       "NCCL_P2P_DISABLE",             NULL },
    { "none",       "=",                            NULL },
};
/* clang-format on */

CASE (lint)
{
    for (size_t i = 0; i < COUNT (lints); i++) {
        char *env[] = { "HOME=/", (char *)lints[i].env, NULL };
        char lines[NCCL_LINES][NCCL_LINE] = { "" };
        struct fabric f;
        int n;

        read_tree (lints[i].tree, &f, 0);
        n = nccl_lint (env, "X,Y", &f, lines);
        print_message ("# %s: %s\n", lints[i].env, lines[0]);
        assert_int_equal (n, lints[i].line ? 1 : 0);
        if (lints[i].line)
            assert_int_equal (strncmp (lines[0], lints[i].line, strlen (lints[i].line)), 0);
    }
}

CASE (lint_order)
{
    char *env[] = { "NCCL_ALGO=Ring",
                    "NCCL_PROTO=Simple",
                    "NCCL_TIMEOUT=1",
                    "NCCL_NTHREADS=64",
                    "NCCL_BUFFSIZE=1",
                    "NCCL_P2P_DISABLE=1",
                    NULL };
    char lines[NCCL_LINES][NCCL_LINE];
    struct fabric f = { .kind = FABRIC_TCP };

    assert_int_equal (nccl_lint (env, "", &f, lines), NCCL_LINES);
    assert_non_null (strstr (lines[0], "NCCL_P2P_DISABLE=1"));
    assert_non_null (strstr (lines[1], "NCCL_TIMEOUT"));
    assert_non_null (strstr (lines[2], "NCCL_ALGO"));
    assert_string_equal (lines[4], "2 more lines like these");
    assert_int_equal (nccl_lint (env, "NCCL_ALGO", &f, lines), NCCL_LINES);
    assert_non_null (strstr (lines[4], "NCCL_BUFFSIZE"));
    assert_int_equal (nccl_lint (env + 6, "", &f, lines), 0);
}

/* No name occurs twice, and each is one that NCCL can have. */
CASE (tables)
{
    for (const struct nccl_variable *v = nccl_variables; v->name; v++) {
        assert_ptr_equal (nccl_find (v->name), v);
        assert_true (strlen (v->name) < NCCL_NAME);
        assert_non_null (v->what);
    }
    for (const char *const *u = nccl_undocumented; *u; u++)
        assert_null (nccl_find (*u));
}

static int make_root (void **state)
{
    return mkdtemp (root) ? 0 : -1;
}

static int drop_root (void **state)
{
    remove_tree ();
    return rmdir (root);
}

int main (void)
{
    return run_cases (make_root, drop_root);
}
