/* SPDX-License-Identifier: Apache-2.0 */
/* What each framework reads, and how Slurm says where a task is. */
#include "runtime/rankenv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS = 12000, PORT_MIN = 10000 };

struct list {
    struct rank_variable *vars;
    int n;
};

static void add_text (struct list *l, const char *name, const char *value)
{
    if (l->n < RANK_VARIABLES_MAX) {
        l->vars[l->n].name = name;
        snprintf (l->vars[l->n].value, sizeof (l->vars[0].value), "%s", value);
        l->n++;
    }
}

static void add_number (struct list *l, const char *name, long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%ld", value);
    add_text (l, name, text);
}

static void fill_off (const struct rank_facts *f, struct list *l)
{
    (void)f;
    (void)l;
}

static void fill_torch (const struct rank_facts *f, struct list *l)
{
    add_number (l, "RANK", f->rank);
    add_number (l, "WORLD_SIZE", f->size);
    add_number (l, "LOCAL_RANK", f->local_rank);
    add_number (l, "LOCAL_WORLD_SIZE", f->local_size);
    add_number (l, "NODE_RANK", f->node);
    add_text (l, "MASTER_ADDR", f->master);
    add_number (l, "MASTER_PORT", f->port);
    if (*f->interface)
        add_text (l, "GLOO_SOCKET_IFNAME", f->interface);
}

static const struct {
    const char *name;
    void (*fill) (const struct rank_facts *f, struct list *l);
} frameworks[] = {
    { "torch", fill_torch },
    { "off", fill_off },
};
enum { FRAMEWORKS = sizeof (frameworks) / sizeof (*frameworks) };

const char *const rankenv_frameworks[] = { "torch", "off", NULL };

int rankenv_fill (const char *framework,
                  const struct rank_facts *facts,
                  struct rank_variable vars[static RANK_VARIABLES_MAX])
{
    struct list l = { vars, 0 };

    for (int i = 0; i < FRAMEWORKS; i++)
        if (!strcmp (frameworks[i].name, framework)) {
            frameworks[i].fill (facts, &l);
            return l.n;
        }
    errno = EINVAL;
    return -1;
}

static int invalid (void)
{
    errno = EINVAL;
    return -1;
}

/* Each bracket stands for its first number, with its leading zeros. */
int rankenv_first_host (const char *list, char *buf, size_t size)
{
    size_t n = 0;

    while (*list && *list != ',') {
        if (*list == '[') {
            if (!isdigit ((unsigned char)*++list))
                return invalid ();
            while (isdigit ((unsigned char)*list) && n + 1 < size)
                buf[n++] = *list++;
            list += strcspn (list, "]");
            if (*list++ != ']')
                return invalid ();
            continue;
        }
        if (*list == ']' || n + 1 >= size)
            return invalid ();
        buf[n++] = *list++;
    }
    if (n == 0)
        return invalid ();
    buf[n] = '\0';
    return 0;
}

long rankenv_tasks_of_node (const char *spec, long node)
{
    while (isdigit ((unsigned char)*spec)) {
        char *end;
        long tasks = strtol (spec, &end, 10);
        long nodes = 1;
        if (!strncmp (end, "(x", 2)) {
            nodes = strtol (end + 2, &end, 10);
            if (*end++ != ')' || nodes < 1)
                return invalid ();
        }
        if (node < nodes)
            return tasks;
        node -= nodes;
        if (*end != ',')
            break;
        spec = end + 1;
    }
    return invalid ();
}

/* Jobs and steps that are near each other get ports that are not. */
static uint32_t mix (uint32_t job, uint32_t step)
{
    uint64_t z = ((uint64_t)job << 32 | step) + 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

int rankenv_port (const char *reserved,
                  uint32_t job,
                  uint32_t step,
                  int ephemeral)
{
    char *end;
    long port = reserved ? strtol (reserved, &end, 10) : 0;
    int low = ephemeral - PORTS;

    if (port > 0 && port < 65536 && (!*end || *end == '-' || *end == ','))
        return (int)port;
    if (low < PORT_MIN)
        low = PORT_MIN;
    return low + (int)(mix (job, step) % PORTS);
}
