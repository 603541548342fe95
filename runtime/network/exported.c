/* SPDX-License-Identifier: Apache-2.0 */
/* Check variables that the user exported and the plugin would have set differently. */
#include "runtime/network/exported.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/nearest_word.h"
#include "runtime/network/reach.h"

enum { TEXT = 512 };

struct check {
    const struct task *t;
    const char *ours;
    char (*lines)[EXPORTED_LINE];
    int n;
};

__attribute__ ((format (printf, 2, 3))) static void report_export (struct check *c, const char *fmt,
                                                                   ...)
{
    va_list ap;
    char *line;

    if (c->n == EXPORTED_LINES)
        return;
    line = c->lines[c->n++];
    va_start (ap, fmt);
    vsnprintf (line, EXPORTED_LINE, fmt, ap);
    va_end (ap);
    for (; *line; line++) /* the value may be a list of hosts, one per line */
        if ((unsigned char)*line < ' ')
            *line = ' ';
}

static bool exported_text (const struct task *t, const char *ours, const char *name,
                           char text[TEXT])
{
    return variables_text (&t->vars, name, text, TEXT) == 0 && !word_listed (ours, name);
}

bool exported_has (const struct task *t, const char *ours, const char *name)
{
    char text[TEXT];

    return exported_text (t, ours, name, text);
}

/* Whether the framework reads the variable. */
static bool framework_reads (const struct task *t, const char *name)
{
    for (int i = 0; i < t->environment.n; i++)
        if (!strcmp (t->environment.vars[i].name, name))
            return true;
    return false;
}

/* ---- addresses and ports ---- */

bool exported_port_is_taken (int port)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons ((uint16_t)port) };
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    bool taken;

    if (fd < 0)
        return false;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    taken = bind (fd, (struct sockaddr *)&any, sizeof (any)) < 0
            && (errno == EADDRINUSE || errno == EACCES);
    close (fd);
    return taken;
}

static void check_port (struct check *c, const char *name, const char *text)
{
    char *end;
    long port = strtol (text, &end, 10);

    if (end == text || *end || port < 1 || port > 65535)
        report_export (c, "%s=%.64s was exported, and is no port", name, text);
    else if (exported_port_is_taken ((int)port))
        report_export (c,
                       "%s=%ld was exported, and rank %ld cannot listen there (%s): "
                       "unset it in the job script",
                       name, port, c->t->facts.rank, strerror (errno));
}

/* Check that rank 0 can listen at that name, and that the others can reach it. */
static void check_host (struct check *c, const char *name, const char *host)
{
    const struct rank_facts *f = &c->t->facts;
    bool apart = f->nodes > 1 && !f->one_machine;
    struct reach_address a;
    enum reach_name found = reach_resolve (host, &a);
    char interface[64];

    if (found == REACH_UNKNOWN)
        report_export (c,
                       "%s=%.64s was exported, and has no address on %.64s, where rank "
                       "%ld runs: unset it in the job script",
                       name, host, f->own, f->rank);
    else if (found == REACH_LOOPBACK && apart && !reach_same_name (host, f->own))
        report_export (c,
                       "%s=%.64s was exported, and no other node of this step reaches "
                       "it: unset it in the job script",
                       name, host);
    else if (found == REACH_FOUND && reach_interface (&a, interface, sizeof (interface)) < 0)
        report_export (c,
                       "%s=%.64s was exported, and is no address of %.64s, where rank "
                       "%ld runs: unset it in the job script",
                       name, host, f->own, f->rank);
}

enum port_of { HOST_ONLY, HOST_OR_PORT, HOST_AND_PORT };

/* Check "host:port", "[v6]:port", or a host. */
static void check_endpoint (struct check *c, const char *name, enum port_of wanted, char *text)
{
    char *colon = strrchr (text, ':');
    char *host = text;

    if (*text == '[' && strchr (text, ']')) {
        host = text + 1;
        colon = strchr (text, ']')[1] == ':' ? strchr (text, ']') + 1 : NULL;
        *strchr (text, ']') = '\0';
    } else if (colon && strchr (text, ':') != colon)
        colon = NULL; /* an IPv6 address */
    if (colon) {
        *colon = '\0';
        if (wanted == HOST_ONLY)
            report_export (c,
                           "%s=%.64s:%.64s was exported, and is no address, but one with a port: "
                           "unset it in the job script",
                           name, host, colon + 1);
        else
            check_port (c, name, colon + 1);
    } else if (wanted == HOST_AND_PORT) {
        report_export (c, "%s=%.64s was exported, and has no port: unset it in the job script",
                       name, host);
    }
    if (!colon || wanted != HOST_ONLY)
        check_host (c, name, host);
}

static void check_master_address (struct check *c)
{
    static const struct {
        const char *name;
        enum port_of wanted;
    } addresses[] = {
        { "MASTER_ADDR", HOST_ONLY },
        { "PET_MASTER_ADDR", HOST_ONLY },
        { "DMLC_PS_ROOT_URI", HOST_ONLY },
        { "PET_RDZV_ENDPOINT", HOST_OR_PORT },
        { "JAX_COORDINATOR_ADDRESS", HOST_AND_PORT },
        { "PADDLE_MASTER", HOST_AND_PORT },
    };
    static const char *const ports[] = { "MASTER_PORT", "PET_MASTER_PORT", "DMLC_PS_ROOT_PORT" };
    char text[TEXT];

    for (size_t i = 0; i < sizeof (addresses) / sizeof (*addresses); i++)
        if (framework_reads (c->t, addresses[i].name)
            && exported_text (c->t, c->ours, addresses[i].name, text))
            check_endpoint (c, addresses[i].name, addresses[i].wanted, text);
    for (size_t i = 0; i < sizeof (ports) / sizeof (*ports); i++)
        if (framework_reads (c->t, ports[i]) && exported_text (c->t, c->ours, ports[i], text))
            check_port (c, ports[i], text);
}

/* ---- interfaces ---- */

bool exported_way (struct task *t, const char *ours)
{
    static const char *const names[] = { "MASTER_ADDR", "PET_MASTER_ADDR" };
    char text[TEXT], interface[sizeof (t->facts.interface)];
    struct reach_address to, own;

    if (!framework_reads (t, "GLOO_SOCKET_IFNAME"))
        return false;
    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (framework_reads (t, names[i]) && exported_text (t, ours, names[i], text)
            && reach_resolve (text, &to) == REACH_FOUND && reach_source (&to, &own) == 0
            && reach_interface (&own, interface, sizeof (interface)) == 0
            && strcmp (interface, "lo") /* for 0.0.0.0 */
            && strcmp (interface, t->facts.interface)) {
            memcpy (t->facts.interface, interface, sizeof (interface));
            return true;
        }
    return false;
}

/* NCCL uses all interfaces with this prefix, so one good interface is enough. */
static const char *useless_prefix (const char *word, const char *wanted)
{
    struct if_nameindex *all = if_nameindex ();
    const char *why = "is no interface of this node";

    for (struct if_nameindex *i = all; i && i->if_name && why; i++)
        if (!strncmp (i->if_name, word, strlen (word)))
            why = reach_useless (i->if_name, wanted);
    if_freenameindex (all);
    return why;
}

/* Let one task of each node report errors that differ between nodes. */
static void check_interface (struct check *c, const char *name, bool is_nccl)
{
    const struct rank_facts *f = &c->t->facts;
    char text[TEXT], copy[TEXT];
    char *next = NULL;
    const char *why = NULL;

    if (!exported_text (c->t, c->ours, name, text) || *text == '^')
        return;
    snprintf (copy, sizeof (copy), "%s", text + (is_nccl && *text == '='));
    for (char *w = strtok_r (copy, ",", &next); w; w = strtok_r (NULL, ",", &next)) {
        w[strcspn (w, ":")] = '\0';
        why = is_nccl && *text != '=' ? useless_prefix (w, f->interface)
                                      : reach_useless (w, f->interface);
        if (is_nccl ? !why : why != NULL)
            break;
    }
    if (why && (f->rank == 0 || !strstr (why, "loopback")))
        report_export (c,
                       "%s=%.64s was exported, and %s on %.64s: other nodes do not "
                       "reach this one; unset it in the job script",
                       name, text, why, f->own);
}

static void check_interfaces (struct check *c)
{
    static const char *const names[] = { "GLOO_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE",
                                         "DMLC_INTERFACE" };
    char text[TEXT];

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (framework_reads (c->t, names[i]) && exported_text (c->t, c->ours, names[i], text)
            && !*text && c->t->facts.rank == 0)
            report_export (c, "%s was exported, and is empty: unset it in the job script",
                           names[i]);
        else if (framework_reads (c->t, names[i]))
            check_interface (c, names[i], false);
    check_interface (c, "NCCL_SOCKET_IFNAME", true);
    check_interface (c, "TP_SOCKET_IFNAME", false);
}

int exported_check (const struct task *t, const char *ours,
                    char lines[EXPORTED_LINES][EXPORTED_LINE])
{
    struct check c = { t, ours, lines, 0 };

    if (t->facts.rank == t->master_rank)
        check_master_address (&c);
    if (t->facts.local_rank == 0 && t->facts.nodes > 1 && !t->facts.one_machine)
        check_interfaces (&c);
    return c.n;
}
