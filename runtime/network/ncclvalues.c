/* SPDX-License-Identifier: Apache-2.0 */
/* The values that variables of a profile can have, where that is known. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/network/nccl.h"

/* By NVIDIA's manual, and the widths of fields in verbs (a time-out has 5 bits,
 * retries 3); what may be a word that we do not know is not here.
 */
struct domain {
    const char *name;
    const char *words[6]; /* any case; with high > low also a number */
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

static const struct domain *find (const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof (domains) / sizeof (*domains); i++)
        if (strlen (domains[i].name) == n && !strncmp (domains[i].name, name, n))
            return &domains[i];
    return NULL;
}

/* As NCCL reads it: decimal, 0x or 0. */
static bool is_in_range (const struct domain *d, const char *value)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll (value, &end, 0);
    return d->high > d->low && errno == 0 && end != value && !*end && n >= d->low && n <= d->high;
}

static size_t add (char *why, size_t n, const char *separator, const char *word)
{
    return n + (size_t)snprintf (why + n, NCCL_WHY - n, "%s%s", separator, word);
}

static void describe (const struct domain *d, char why[static NCCL_WHY])
{
    char number[64] = "";
    size_t n;

    if (d->high == INT_MAX)
        snprintf (number, sizeof (number), "a number from %lld on", d->low);
    else if (d->high > d->low)
        snprintf (number, sizeof (number), "a number from %lld to %lld", d->low, d->high);
    n = add (why, 0, "must be ", number);
    for (int i = 0; i < 6 && d->words[i]; i++)
        n = add (why, n, i || *number ? " or " : "", d->words[i]);
}

bool nccl_value_is_wrong (const char *name, const char *value, char why[static NCCL_WHY])
{
    const struct domain *d = find (name, strcspn (name, "="));

    if (!d || !*value || is_in_range (d, value))
        return false;
    for (int i = 0; i < 6 && d->words[i]; i++)
        if (!strcasecmp (d->words[i], value))
            return false;
    describe (d, why);
    return true;
}
