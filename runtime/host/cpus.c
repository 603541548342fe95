/* SPDX-License-Identifier: Apache-2.0 */
/* CPU sets and their two notations, lists and hexadecimal masks. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/topology.h"

enum { WORDS = CPUS_MAX / 64 };

int cpus_count (const struct cpu_set *s)
{
    int n = 0;

    for (int i = 0; i < WORDS; i++)
        n += __builtin_popcountll (s->word[i]);
    return n;
}

bool cpus_meet (const struct cpu_set *a, const struct cpu_set *b)
{
    for (int i = 0; i < WORDS; i++)
        if (a->word[i] & b->word[i])
            return true;
    return false;
}

void cpus_and (struct cpu_set *out, const struct cpu_set *a, const struct cpu_set *b)
{
    for (int i = 0; i < WORDS; i++)
        out->word[i] = a->word[i] & b->word[i];
}

static int refuse_list (struct cpu_set *s)
{
    memset (s, 0, sizeof (*s));
    errno = EINVAL;
    return -1;
}

int cpus_parse (const char *list, struct cpu_set *s)
{
    memset (s, 0, sizeof (*s));
    while (isdigit ((unsigned char)*list)) {
        char *end;
        long from = strtol (list, &end, 10);
        long to = *end == '-' ? strtol (end + 1, &end, 10) : from;
        if (from > to || to >= CPUS_MAX)
            return refuse_list (s);
        while (from <= to)
            cpus_add (s, (int)from++);
        list = end + (*end == ',');
    }
    return *list && *list != '\n' ? refuse_list (s) : 0;
}

int cpus_parse_hex (const char *mask, int len, struct cpu_set *s)
{
    memset (s, 0, sizeof (*s));
    if (len > 2 && mask[0] == '0' && (mask[1] | 32) == 'x') {
        mask += 2;
        len -= 2;
    }
    if (len <= 0 || len > CPUS_MAX / 4)
        return refuse_list (s);
    for (int i = 0; i < len; i++) {
        char digit[2] = { mask[len - 1 - i] };
        if (!isxdigit ((unsigned char)*digit))
            return refuse_list (s);
        s->word[i / 16] |= (uint64_t)strtoul (digit, NULL, 16) << i % 16 * 4;
    }
    return 0;
}

char *cpus_print (const struct cpu_set *s, char *buf, int size)
{
    int used = 0;

    *buf = '\0';
    for (int i = 0; i < CPUS_MAX && used < size; i++) {
        int to = i;
        if (!cpus_has (s, i))
            continue;
        while (to + 1 < CPUS_MAX && cpus_has (s, to + 1))
            to++;
        used += snprintf (buf + used, (size_t)(size - used), to > i ? "%s%d-%d" : "%s%d",
                          used ? "," : "", i, to);
        i = to;
    }
    return buf;
}
