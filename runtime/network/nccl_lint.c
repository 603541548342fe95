/* SPDX-License-Identifier: Apache-2.0 */
/* Find errors in the network variables that a user exported. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/nearest_word.h"
#include "runtime/network/nccl.h"

/* Domains from NVIDIA's manual and from the widths of verbs fields (5 bits for a
 * timeout, 3 for retries).  Variables whose values may include words that we do not
 * know are not listed.
 */
struct domain {
    const char *name;
    const char *words[6]; /* in any case; if high > low, a number is valid too */
    long long low, high;
};

/* clang-format off */
static const struct domain domains[] = {
    { "NCCL_SOCKET_FAMILY",           { "AF_INET", "AF_INET6" }, 0, 0 },
    { "NCCL_SOCKET_RETRY_CNT",        { NULL }, 0, INT_MAX },
    { "NCCL_SOCKET_RETRY_SLEEP_MSEC", { NULL }, 0, INT_MAX },
    { "NCCL_SOCKET_POLL_TIMEOUT_MSEC", { NULL }, -1, INT_MAX },
    { "NCCL_SOCKET_NTHREADS",         { NULL }, 1, 16 },
    { "NCCL_NSOCKS_PERTHREAD",        { NULL }, 1, 16 },
    { "NCCL_CROSS_NIC",               { NULL }, 0, 2 },
    { "NCCL_IB_TIMEOUT",              { NULL }, 0, 31 },
    { "NCCL_IB_RETRY_CNT",            { NULL }, 0, 7 },
    { "NCCL_IB_GID_INDEX",            { NULL }, -1, 255 },
    { "NCCL_IB_ADDR_FAMILY",          { "AF_INET", "AF_INET6" }, 0, 0 },
    { "NCCL_IB_ROCE_VERSION_NUM",     { NULL }, 1, 2 },
    { "NCCL_IB_SL",                   { NULL }, -1, 15 },
    { "NCCL_IB_TC",                   { NULL }, -1, 255 },
    { "NCCL_IB_FIFO_TC",              { NULL }, -1, 255 },
    { "NCCL_IB_RETURN_ASYNC_EVENTS",  { NULL }, 0, 1 },
    { "NCCL_OOB_NET_ENABLE",          { NULL }, 0, 1 },
    { "NCCL_UID_STAGGER_THRESHOLD",   { NULL }, 0, INT_MAX },
    { "NCCL_UID_STAGGER_RATE",        { NULL }, 1, INT_MAX },
    { "NCCL_IGNORE_CPU_AFFINITY",     { NULL }, 0, 1 },
    { "NCCL_DEBUG",                   { "VERSION", "WARN", "INFO", "ABORT", "TRACE", "NONE" }, 0, 0 },
    { "NCCL_COLLNET_ENABLE",          { NULL }, 0, 1 },
    { "NCCL_COLLNET_NODE_THRESHOLD",  { NULL }, 0, INT_MAX },
    { "NCCL_MULTI_RANK_GPU_ENABLE",   { NULL }, 0, 1 },
    { "NCCL_SET_THREAD_NAME",         { NULL }, 0, 1 },
    { "UCX_MAX_RNDV_RAILS",           { NULL }, 1, INT_MAX },
    { "UCX_MAX_EAGER_RAILS",          { NULL }, 1, INT_MAX },
    { "UCX_IB_GID_INDEX",             { "auto" }, 0, 255 },
    { "UCX_IB_TRAFFIC_CLASS",         { "auto" }, 0, 255 },
    { "FI_CXI_DEFAULT_CQ_SIZE",       { NULL }, 1, INT_MAX },
    { "FI_CXI_DEFAULT_TX_SIZE",       { NULL }, 1, INT_MAX },
    { "FI_CXI_RX_MATCH_MODE",         { "hardware", "software", "hybrid" }, 0, 0 },
    { "FI_CXI_RDZV_THRESHOLD",        { NULL }, 0, INT_MAX },
    { "FI_CXI_RDZV_GET_MIN",          { NULL }, 0, INT_MAX },
    { "FI_CXI_RDZV_EAGER_SIZE",       { NULL }, 0, INT_MAX },
};
/* clang-format on */

static const struct domain *find_variable (const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof (domains) / sizeof (*domains); i++)
        if (strlen (domains[i].name) == n && !strncmp (domains[i].name, name, n))
            return &domains[i];
    return NULL;
}

/* Parse as NCCL does: decimal, 0x or 0. */
static bool is_in_range (const struct domain *d, const char *value)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll (value, &end, 0);
    return d->high > d->low && errno == 0 && end != value && !*end && n >= d->low && n <= d->high;
}

static size_t append_word (char *why, size_t n, const char *separator, const char *word)
{
    return n + (size_t)snprintf (why + n, NCCL_WHY - n, "%s%s", separator, word);
}

static void describe_domain (const struct domain *d, char why[static NCCL_WHY])
{
    char number[64] = "";
    size_t n;

    if (d->high == INT_MAX)
        snprintf (number, sizeof (number), "a number from %lld on", d->low);
    else if (d->high > d->low)
        snprintf (number, sizeof (number), "a number from %lld to %lld", d->low, d->high);
    n = append_word (why, 0, "must be ", number);
    for (int i = 0; i < 6 && d->words[i]; i++)
        n = append_word (why, n, i || *number ? " or " : "", d->words[i]);
}

bool nccl_value_is_wrong (const char *name, const char *value, char why[static NCCL_WHY])
{
    const struct domain *d = find_variable (name, strcspn (name, "="));

    if (!d || !*value || is_in_range (d, value))
        return false;
    for (int i = 0; i < 6 && d->words[i]; i++)
        if (!strcasecmp (d->words[i], value))
            return false;
    describe_domain (d, why);
    return true;
}

enum { WORDS = 512, ITEM = 64 };

struct lint {
    const struct fabric *f;
    char (*lines)[NCCL_LINE];
    int n; /* includes lines that did not fit */
};

static void add_lint (struct lint *l, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));
static void add_lint (struct lint *l, const char *fmt, ...)
{
    va_list ap;

    if (l->n++ >= NCCL_LINES)
        return;
    va_start (ap, fmt);
    vsnprintf (l->lines[l->n - 1], NCCL_LINE, fmt, ap);
    va_end (ap);
}

static bool starts_with (const char *text, const char *prefix)
{
    return !strncmp (text, prefix, strlen (prefix));
}

static bool is_on (const char *value)
{
    return *value && strcmp (value, "0");
}

static bool is_rdma (const struct fabric *f)
{
    return f->kind == FABRIC_INFINIBAND || f->kind == FABRIC_ROCE;
}

/* ---- values against the fabric ---- */

/* Read the next item of a comma-separated list.  Returns false at its end. */
static bool next_item (const char **list, char item[static ITEM])
{
    size_t n;

    *list += strspn (*list, ", ");
    n = strcspn (*list, ",");
    snprintf (item, ITEM, "%.*s", (int)(n < ITEM ? n : ITEM - 1), *list);
    *list += n;
    return *item;
}

static bool item_matches (const char *item, const char *name, bool exact)
{
    return exact ? !strcmp (item, name) : starts_with (name, item);
}

static bool interface_matches (const struct fabric *f, const char *item, bool exact)
{
    for (int i = 0; i < f->ninterfaces; i++)
        if (item_matches (item, f->interfaces[i].name, exact))
            return true;
    return false;
}

static bool has_port (const struct fabric *f, const char *item, bool exact)
{
    char hca[ITEM];

    snprintf (hca, sizeof (hca), "%.*s", (int)strcspn (item, ":"), item);
    for (int i = 0; i < f->nports; i++)
        if (item_matches (hca, f->ports[i].name, exact))
            return true;
    return false;
}

/* Whether no item exists, so that there is nothing to communicate over.  "^"
 * excludes items.
 */
static bool names_none (const struct fabric *f, const char *value, bool exact,
                        bool (*exists) (const struct fabric *, const char *, bool))
{
    char item[ITEM];

    if (*value == '^' || !*value)
        return false;
    if (*value == '=') {
        exact = true;
        value++;
    }
    while (next_item (&value, item))
        if (exists (f, item, exact))
            return false;
    return true;
}

static bool no_prefix (const struct fabric *f, const char *value)
{
    return f->ninterfaces > 0 && names_none (f, value, false, interface_matches);
}

static bool no_interface (const struct fabric *f, const char *value)
{
    return f->ninterfaces > 0 && !strpbrk (value, "/.")
           && names_none (f, value, true, interface_matches);
}

static bool no_adapter (const struct fabric *f, const char *value)
{
    return f->nports > 0 && names_none (f, value, false, has_port);
}

static bool either_prefix (const struct fabric *f, const char *item, bool exact)
{
    return interface_matches (f, item, exact) || has_port (f, item, exact);
}

static bool no_device (const struct fabric *f, const char *value)
{
    return f->ninterfaces > 0 && strcmp (value, "all")
           && names_none (f, value, true, either_prefix);
}

static bool no_rdma (const struct fabric *f, const char *value)
{
    return is_rdma (f) && is_on (value);
}

static bool value_is_on (const struct fabric *f, const char *value)
{
    (void)f;
    return is_on (value);
}

static bool socket_module (const struct fabric *f, const char *value)
{
    return f->kind != FABRIC_TCP && !strcasecmp (value, "Socket");
}

static bool module_ib (const struct fabric *f, const char *value)
{
    return (f->kind == FABRIC_SLINGSHOT || f->kind == FABRIC_EFA) && !strcasecmp (value, "IB");
}

/* Whether the UCX transport drives adapters, by its prefix. */
static bool is_rdma_transport (const char *item)
{
    static const char *const known[] = { "rc", "dc", "ud", "ib", "all", NULL };

    for (const char *const *k = known; *k; k++)
        if (starts_with (item, *k))
            return true;
    return false;
}

static bool tcp_only (const struct fabric *f, const char *value)
{
    char item[ITEM];
    bool has_tcp = false;

    if (!is_rdma (f) || *value == '^')
        return false;
    while (next_item (&value, item))
        if (is_rdma_transport (item))
            return false;
        else if (!strcmp (item, "tcp"))
            has_tcp = true;
    return has_tcp;
}

static bool gid (const struct fabric *f, const char *value)
{
    (void)f;
    return atoi (value) >= 0;
}

static bool openib (const struct fabric *f, const char *value)
{
    (void)f;
    return *value != '^' && strstr (value, "openib");
}

/* clang-format off */
static const struct {
    const char *name;
    bool (*is_wrong) (const struct fabric *f, const char *value);
    const char *why;
} nccl_values[] = {
    { "NCCL_IB_DISABLE",    no_rdma,       "this node has a fabric, which NCCL then does not use" },
    { "NCCL_NET",           socket_module, "this node has a fabric, which NCCL then does not use" },
    { "NCCL_NET",           module_ib,     "this node's fabric is none that NCCL's own module drives" },
    { "NCCL_SOCKET_IFNAME", no_prefix,     "this node has no such interface" },
    { "GLOO_SOCKET_IFNAME", no_interface,  "this node has no such interface" },
    { "TP_SOCKET_IFNAME",   no_interface,  "this node has no such interface" },
    { "HOROVOD_GLOO_IFACE", no_interface,  "this node has no such interface" },
    { "OMPI_MCA_btl_tcp_if_include", no_interface, "this node has no such interface" },
    { "NCCL_IB_HCA",        no_adapter,    "this node has no such adapter" },
    { "UCX_NET_DEVICES",    no_device,     "this node has no such adapter or interface" },
    { "UCX_TLS",            tcp_only,      "this node has a fabric, which UCX then does not use" },
    { "OMPI_MCA_btl",       openib,        "Open MPI 5 has no openib; UCX drives the fabric" },
    { "NCCL_P2P_DISABLE",   value_is_on,   "GPUs of a node no longer talk over NVLink or PCIe" },
    { "NCCL_SHM_DISABLE",   value_is_on,   "ranks of a node then talk over the network" },
    { "NCCL_IB_GID_INDEX",  gid,           "NCCL finds it since 2.21, and it differs between nodes" },
};

/* Variables that are not NCCL's own: from builds of modules and images, from
 * plugins and tests.
 */
static const char *const foreign[] = {
    "NCCL_ROOT", "NCCL_HOME", "NCCL_DIR", "NCCL_PATH", "NCCL_PREFIX", "NCCL_VERSION", "NCCL_INC", "NCCL_LIB",
    "NCCL_BASE", "NCCL_TESTS", "NCCL_FASTRAK", "NCCL_FASTSOCKET", "NCCL_GPUDIRECTTCPX", "NCCL_SHIMNET",
    "NCCL_TUNER_CONFIG", "NCCL_UCX_", "NCCL_SHARP_", "NCCL_PLUGIN_P2P", "NCCL_INSPECTOR", "NCCL_PROFILE_",
    "NCCL_GIN_", NULL
};

/* First words of the variables of UCX and its modules, from its source. */
static const char *const ucx[] = {
    "ACC", "ADAPTIVE", "ADDR", "ADDRESS", "ALLOC", "AM", "AR", "ASYNC", "ATOMIC", "BCOPY",
    "BISTRO", "BRIDGE", "BUILTIN", "BW", "CACHE", "CC", "CM", "CMA", "COMPACT", "CONFIG",
    "CONFIGURE", "CONN", "CONNECT", "COUNTER", "CUDA", "DC", "DCI", "DCIS", "DCT", "DDP",
    "DEBUG", "DEVICE", "DIR", "DIRECT", "DISTANCE", "DLOPEN", "DM", "DMABUF", "DYNAMIC", "ECE",
    "EFA", "ENABLE", "EP", "ERROR", "ETH", "EVENTS", "EXP", "EXTRA", "FAILURE", "FC", "FENCE",
    "FIFO", "FLID", "FLUSH", "FORK", "FULL", "GDA", "GDB", "GDR", "GGA", "GID", "GLOBAL", "GPU",
    "GVA", "HANDLE", "HOME", "HOP", "HUGETLB", "IB", "ID", "INDIRECT", "INFO", "KEEPALIVE",
    "KEEPCNT", "KEEPIDLE", "KEEPINTVL", "KNEM", "LAG", "LIBPERF", "LIBRARY", "LINGER",
    "LISTENER", "LOCAL", "LOG", "MALLOC", "MAX", "MEM", "MEMORY", "MEMTRACK", "MEMTYPE", "MIN",
    "MLX5", "MM", "MMAP", "MMIO", "MODULE", "MODULES", "MPOOL", "MULTI", "NET", "NODE",
    "NODELAY", "NUM", "ODP", "OVERHEAD", "PATH", "PCI", "PERF", "PERFTEST", "PKEY", "PLUGIN",
    "PORT", "POSIX", "PREF", "PREFER", "PREFIX", "PRINT", "PRIV", "PROCESS", "PROFILE", "PROTO",
    "PROTOS", "PUT", "QUOTA", "RC", "RCACHE", "RCVBUF", "RECOVERY", "RECV", "REG", "RESERVED",
    "RESOLVE", "RETAIN", "RETRY", "REUSEADDR", "REVERSE", "RKEY", "RMA", "RNDV", "RNR", "ROCE",
    "ROCM", "ROOT", "RX", "SA", "SCOPY", "SEG", "SELECT", "SELF", "SEND", "SENDV", "SHARED",
    "SHM", "SIGPOOL", "SINGLE", "SL", "SM", "SMKEY", "SNDBUF", "SOCKADDR", "SOCKCM", "SOURCE",
    "SRD", "SRQ", "STATS", "STREAM", "SUBNET", "SYN", "SYSV", "TCP", "TIMEOUT", "TIMER", "TLS",
    "TM", "TOPO", "TRACE", "TRAFFIC", "TX", "UCM", "UD", "UNIFIED", "USE", "USER", "VERSION",
    "VFS", "WARN", "WIREUP", "XGVMI", "XPMEM", "ZCOPY", "ZE", NULL
};
/* clang-format on */

static bool is_foreign (const char *name)
{
    for (const char *const *p = foreign; *p; p++)
        if (starts_with (name, *p))
            return true;
    return false;
}

static void lint_value (struct lint *l, const char *e)
{
    const char *value = strchr (e, '=');
    char why[NCCL_WHY];

    for (size_t i = 0; value && i < sizeof (nccl_values) / sizeof (*nccl_values); i++) {
        size_t n = strlen (nccl_values[i].name);
        if (value == e + n && !strncmp (e, nccl_values[i].name, n)
            && nccl_values[i].is_wrong (l->f, value + 1)) {
            add_lint (l, "%.*s=%.64s: %s", (int)n, e, value + 1, nccl_values[i].why);
            return;
        }
    }
    if (value && nccl_value_is_wrong (e, value + 1, why))
        add_lint (l, "%.*s=%.64s: %s", (int)(value - e), e, value + 1, why);
}

/* ---- names ---- */

static bool is_undocumented (const char *e)
{
    size_t n = strcspn (e, "=");

    for (const char *const *u = nccl_undocumented; *u; u++)
        if (strlen (*u) == n && !strncmp (*u, e, n))
            return true;
    return false;
}

const char *nccl_nearest (const char *name)
{
    const char *words[WORDS];
    int n = 0;

    for (const struct nccl_variable *v = nccl_variables; v->name; v++)
        if (v->class != NCCL_GONE && n < WORDS - 1
            && !strncmp (v->name, name, strcspn (v->name, "_")))
            words[n++] = v->name;
    words[n] = NULL;
    return nearest_word (name, words);
}

static void lint_nccl_name (struct lint *l, const char *e)
{
    const struct nccl_variable *v = nccl_find (e);
    char name[NCCL_NAME];
    const char *meant;

    if (v && v->class == NCCL_GONE)
        add_lint (l, "%s has no effect: %s", v->name, v->what);
    if (v || is_undocumented (e) || is_foreign (e))
        return;
    snprintf (name, sizeof (name), "%.*s", (int)strcspn (e, "="), e);
    meant = nccl_nearest (name);
    add_lint (l, "%s: NCCL has no such variable%s%s%s", name, DID_YOU_MEAN (meant, "", "", ""));
}

static void lint_ucx_name (struct lint *l, const char *e)
{
    const char *word = e + 4;
    size_t n = strcspn (word, "_=");

    for (const char *const *u = ucx; *u; u++)
        if (strlen (*u) == n && !strncmp (*u, word, n))
            return;
    add_lint (l, "%.*s: UCX has no such variable", (int)strcspn (e, "="), e);
}

static void lint_name (struct lint *l, const char *e)
{
    if (starts_with (e, "NCCL_"))
        lint_nccl_name (l, e);
    else if (starts_with (e, "UCX_"))
        lint_ucx_name (l, e);
}

/* ---- leftovers from debugging ---- */

static bool has_value_line (const char *e)
{
    size_t n = strcspn (e, "=");

    for (size_t i = 0; i < sizeof (nccl_values) / sizeof (*nccl_values); i++)
        if (strlen (nccl_values[i].name) == n && !strncmp (e, nccl_values[i].name, n))
            return true;
    return false;
}

static void lint_debug (struct lint *l, const char *e)
{
    const struct nccl_variable *v = nccl_find (e);

    if (v && v->class == NCCL_DEBUG && !has_value_line (e))
        add_lint (l, "%s is for debugging only: %s", v->name, v->what);
    else if (starts_with (e, "NCCL_DEBUG=TRACE"))
        add_lint (l, "NCCL_DEBUG=TRACE is for debugging only: it slows NCCL");
}

int nccl_lint (char *const *env, const char *skip, const struct fabric *f,
               char lines[static NCCL_LINES][NCCL_LINE])
{
    static void (*const passes[]) (struct lint *, const char *) = { lint_value, lint_name,
                                                                    lint_debug };
    struct lint l = { f, lines, 0 };

    for (size_t i = 0; i < sizeof (passes) / sizeof (*passes); i++)
        for (char *const *e = env; *e; e++)
            if (!word_listed_part (skip, *e, strcspn (*e, "=")))
                passes[i](&l, *e);
    if (l.n <= NCCL_LINES)
        return l.n;
    snprintf (lines[NCCL_LINES - 1], NCCL_LINE, "%d more lines like these", l.n - NCCL_LINES + 1);
    return NCCL_LINES;
}
