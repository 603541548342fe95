/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-check: start a collector beside srun, and report to it from each task.
 *
 */
#include "spank/gather.h"

#include <errno.h>
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spank/context.h"
#include "spank/helper.h"
#include "spank/variable.h"

/* The same numbers as launcher/gather.h: what dl ends with when the program is
 * not to start, and how long it may take.
 */
enum {
    END_AGAIN = 75,
    END_NODE = 79,
    QUICK = 20,
    FULL = 125,
    START = 5,
    END_MS = 1000,
    SELF_TEXT = 512
};

static const char variable[] = "DL_GATHER";
static int collector = -1; /* srun's end of its standard input */
static bool in_allocation; /* srun made none */

static bool is_wanted (const char *level, bool table)
{
    return table || (*level && strcmp (level, "off"));
}

static const char *level_word (const char *level)
{
    return *level && strcmp (level, "off") ? level : "none";
}

static void start (spank_t sp, const char *level, bool table)
{
    const char *args[] = {
        "gather", level_word (level), table ? "table" : "plain", NULL
    };
    char line[128];

    unsetenv (variable);
    in_allocation = getenv ("SLURM_JOB_ID") != NULL;
    collector = helper_ask (sp, args, START, line, sizeof (line));
    if (collector >= 0)
        setenv (variable, line, 1);
    else
        slurm_error ("dl: %s: cannot run %s: %s",
                     is_wanted (level, false)
                         ? "--dl-check: each node is checked alone"
                         : "--dl-debug: no table of the ranks",
                     option_command (),
                     strerror (errno));
}

/* srun calls this for each component of a heterogeneous job. */
void gather_start (spank_t sp, const char *level, bool table)
{
    static pid_t done;

    if (!is_wanted (level, table) || done == getpid ())
        return;
    start (sp, level, table);
    done = getpid ();
}

/* In an allocation srun knows only the nodes of all of it. */
static void send_nodes (void)
{
    const char *nodes = getenv ("SLURM_NODELIST");
    char text[65536];
    int n = snprintf (
        text, sizeof (text), "%c%s", in_allocation ? '~' : '=', nodes ?: "");

    if (nodes && n < (int)sizeof (text))
        send (collector, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Nobody who did not ask is told that nodes have nothing to answer. */
void gather_end (void)
{
    struct pollfd p = { .fd = collector, .events = POLLIN };

    if (collector < 0)
        return;
    if (option_is_given (PLUGIN_CHECK) || option_is_given (PLUGIN_DEBUG))
        send_nodes ();
    shutdown (collector, SHUT_WR);
    poll (&p, 1, END_MS);
    close (collector);
    collector = -1;
}

static void describe_self (char self[SELF_TEXT]);

static int find_build (struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t here = (uintptr_t)&describe_self - info->dlpi_addr;
    char *text = arg;
    bool ours = false;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        ours |=
            info->dlpi_phdr[i].p_type == PT_LOAD
            && here - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz;
    for (int i = 0; ours && i < info->dlpi_phnum; i++) {
        const ElfW (Phdr) *h = &info->dlpi_phdr[i];
        const ElfW (Nhdr) *n = (const void *)(info->dlpi_addr + h->p_vaddr);
        const unsigned char *id = (const unsigned char *)(n + 1) + 4;
        if (h->p_type == PT_NOTE && h->p_memsz >= sizeof (*n) + 12
            && n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4) {
            for (int k = 0; k < 8; k++)
                snprintf (text + 2 * (size_t)k, 3, "%02x", id[k]);
            return 1;
        }
    }
    return ours;
}

/* "BUILD ARGUMENTS": what nodes should have in common. */
static void describe_self (char self[SELF_TEXT])
{
    const struct plugin_context *context = context_own ();
    char build[20] = "unknown";
    size_t n;

    dl_iterate_phdr (find_build, build);
    n = (size_t)snprintf (self, SELF_TEXT, "%s", build);
    for (int i = 0; i < context->ac && n < SELF_TEXT; i++)
        n += (size_t)snprintf (self + n, SELF_TEXT - n, " %s", context->av[i]);
    if (context->ac == 0)
        snprintf (self + n, SELF_TEXT - n, " none");
}

void gather_task (spank_t sp, const char *level, bool table)
{
    const char *args[] = {
        "check-rank", level_word (level), table ? "table" : "plain", NULL
    };
    char self[SELF_TEXT];
    unsigned seconds = strcmp (level, "full") ? QUICK : FULL;
    int status;

    if (!is_wanted (level, table))
        return;
    describe_self (self);
    spank_setenv (sp, "DL_PLUGIN", self, 1);
    status = helper_wait (sp, args, seconds);
    if (status == END_AGAIN || status == END_NODE)
        _exit (status);
    if (status != 0 && variable_number (sp, "SLURM_LOCALID") <= 0)
        slurm_error ("dl: %s: %s: %s",
                     is_wanted (level, false)
                         ? "--dl-check: this node is not checked"
                         : "--dl-debug: this node is not in the table",
                     option_command (),
                     status < 0 ? strerror (errno) : "it did not end well");
    spank_unsetenv (sp, variable);
    spank_unsetenv (sp, "DL_PLUGIN");
}
