/* SPDX-License-Identifier: Apache-2.0 */
/* The options that the plugin adds to srun, sbatch and salloc. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/word.h"
#include "runtime/rank/binding.h"
#include "runtime/rank/rankenv.h"
#include "runtime/rank/roles.h"
#include "spank/context.h"

static int check_roles (const char *value, char *why, size_t size)
{
    struct rank_roles roles;

    return roles_parse (value, &roles, why, size);
}

const struct option_row option_rows[] = {
    [OPTION_FRAMEWORK] = {
        "dl",
        "FRAMEWORK",
        "[dl] set each rank's environment for torch, tf, jax, ...",
        rankenv_frameworks,
        NULL,
    },
    [OPTION_ROLES] = {
        "dl-roles",
        "ROLE:N[,ROLE:N]...",
        "[dl] roles of the ranks in their order, as chief:1,ps:2,worker:*",
        NULL,
        check_roles,
    },
    [OPTION_BIND] = {
        "dl-bind",
        "WHERE",
        "[dl] bind each rank to cores near its GPU: closest, socket, spread, none",
        bind_words,
        .list = true,
    },
    [OPTION_NCCL] = {
        "dl-nccl",
        "PROFILE",
        "[dl] set the site's network variables: auto, none or a profile",
        NULL,
        nccl_check,
    },
    [OPTION_CHECK] = {
        "dl-check",
        "LEVEL",
        "[dl] check nodes and GPUs before the program starts: quick, full, off",
        check_words,
        .bare = "quick",
    },
    [OPTION_MONITOR] = {
        "dl-monitor",
        "SECONDS",
        "[dl] sample what each rank uses, every so many seconds (5)",
        NULL,
        monitor_check,
        .bare = "5",
    },
    [OPTION_DEBUG] = {
        "dl-debug",
        "hang:SECONDS",
        "[dl] keep logs, and the stacks of all ranks if they hang",
        NULL,
        debug_check,
        .bare = "hang:600",
    },
};

static struct context context;

const char *option_value (int row)
{
    return context.value[row];
}

const char *option_nccl_dir (void)
{
    return context.policy.nccl_dir;
}

const char *option_command (void)
{
    return context.policy.command;
}

static bool is_word (const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strcmp (text, *words))
            return true;
    return false;
}

/* Whether each part of "A,B" is one of the words. */
static bool is_list (const char *text, const char *const *words)
{
    char word[VALUE_MAX + 1];

    for (;;) {
        size_t len = strcspn (text, ",");
        memcpy (word, text, len);
        word[len] = '\0';
        if (!is_word (word, words))
            return false;
        if (!text[len])
            return true;
        text += len + 1;
    }
}

/* How an option without its value arrives in an inner srun; and --dl=$NAME of a
 * NAME that is not set.
 */
static bool is_absent (const char *value)
{
    return !value || !*value || !strcmp (value, "(null)");
}

void complain (const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (line, sizeof (line), fmt, ap);
    va_end (ap);
    for (char *c = line; *c; c++)
        if (!isascii (*c) || !isprint (*c))
            *c = '?';
    slurm_error ("dl: %s", line);
}

int option_check (int row, const char *value, char *why, size_t size)
{
    const struct option_row *o = &option_rows[row];
    const char *meant;

    if (strnlen (value, VALUE_MAX + 1) > VALUE_MAX) {
        snprintf (why, size, "the value is too long");
        return -1;
    }
    if (!o->words) {
        if (o->check (value, why, size) == 0)
            return 0;
        snprintf (why + strlen (why), size - strlen (why), "; see dl-spank(8)");
        return -1;
    }
    if ((o->list ? is_list : is_word) (value, o->words))
        return 0;
    meant = nearest_word (value, o->words);
    snprintf (why,
              size,
              "no such value; %s%s%s",
              meant ? "did you mean " : "see dl-spank(8)",
              meant ? meant : "",
              meant ? "?" : "");
    return -1;
}

/* May be called twice with the same value.  An error here refuses the command
 * at submission; on a node it could only come from a forged environment, and
 * must not fail the job.
 */
static int set_option (int row, const char *value, int remote)
{
    const struct option_row *o = &option_rows[row];
    char why[WHY_SIZE] = "";

    if (is_absent (value) && !(value = o->bare)) {
        if (!remote)
            complain ("--%s=: the value is missing; see dl-spank(8)", o->name);
        return remote ? 0 : -1;
    }
    if (option_check (row, value, why, sizeof (why)) < 0
        || policy_check (&context.policy, row, value, why, sizeof (why)) < 0) {
        complain ("--%s=%.64s: %s", o->name, value, why);
        return remote ? 0 : -1;
    }
    memcpy (context.value[row], value, strlen (value) + 1);
    return 0;
}

int options_register (spank_t sp)
{
    for (int i = 0; i < OPTIONS; i++) {
        struct spank_option o = {
            .name = (char *)option_rows[i].name,
            .arginfo = (char *)option_rows[i].arginfo,
            .usage = (char *)option_rows[i].usage,
            .has_arg = option_rows[i].bare ? 2 : 1,
            .val = i,
            .cb = set_option,
        };
        if (policy_has (&context.policy, i)
            && spank_option_register (sp, &o) != ESPANK_SUCCESS)
            return -1;
    }
    return 0;
}

void options_begin (int ac, char **av)
{
    memset (&context, 0, sizeof (context));
    policy_read (&context.policy, ac, av);
    memcpy (context.value, context.policy.fallback, sizeof (context.value));
}
