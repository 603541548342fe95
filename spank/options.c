/* SPDX-License-Identifier: Apache-2.0 */
/* The options that the plugin adds to srun, sbatch and salloc. */
#include <string.h>

#include "runtime/rankenv.h"
#include "runtime/roles.h"
#include "runtime/word.h"
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
};

#define DEFAULT_NCCL_DIR SYSCONFDIR "/slurm-dl/nccl.d"
#define DEFAULT_COMMAND  BINDIR "/dl"

static struct context context;

const char *option_value (int row)
{
    return context.value[row];
}

const char *option_nccl_dir (void)
{
    return context.nccl_dir;
}

const char *option_command (void)
{
    return context.command;
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

/* How an option without its value arrives in an inner srun. */
static bool is_absent (const char *value)
{
    return !value || !*value || !strcmp (value, "(null)");
}

static void refuse (const struct option_row *o, const char *value)
{
    const char *meant = nearest_word (value, o->words);

    slurm_error ("dl: --%s=%.64s: no such value%s%s%s",
                 o->name,
                 value,
                 meant ? "; did you mean " : "; see dl-spank(8)",
                 meant ? meant : "",
                 meant ? "?" : "");
}

static bool is_taken (const struct option_row *o, const char *value)
{
    char why[160];

    if (o->words && (o->list ? is_list : is_word) (value, o->words))
        return true;
    if (o->words)
        refuse (o, value);
    else if (o->check (value, why, sizeof (why)) == 0)
        return true;
    else
        slurm_error (
            "dl: --%s=%.64s: %s; see dl-spank(8)", o->name, value, why);
    return false;
}

/* May be called twice with the same value.  An error here refuses the command
 * at submission; on a node it could only come from a forged environment, and
 * must not fail the job.
 */
static int set_option (int row, const char *value, int remote)
{
    const struct option_row *o = &option_rows[row];

    if (is_absent (value) && !(value = o->bare))
        return 0;
    if (strnlen (value, VALUE_MAX + 1) > VALUE_MAX) {
        slurm_error ("dl: --%s: the value is too long", o->name);
        return remote ? 0 : -1;
    }
    if (!is_taken (o, value))
        return remote ? 0 : -1;
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
        if (spank_option_register (sp, &o) != ESPANK_SUCCESS)
            return -1;
    }
    return 0;
}

static void set_path (const char *key, const char *value, char *path)
{
    if (*value == '/' && strlen (value) < PATH_LENGTH)
        memcpy (path, value, strlen (value) + 1);
    else
        slurm_error ("dl: plugstack.conf: %s%.64s: not a path from /, or too "
                     "long",
                     key,
                     value);
}

static const char *after (const char *arg, const char *key)
{
    size_t n = strlen (key);

    return strncmp (arg, key, n) ? NULL : arg + n;
}

static bool is_path (const char *arg)
{
    const char *value;

    if ((value = after (arg, "nccl_dir=")))
        set_path ("nccl_dir=", value, context.nccl_dir);
    else if ((value = after (arg, "dl=")))
        set_path ("dl=", value, context.command);
    return value;
}

static void set_default (const char *arg)
{
    const char *value;

    if ((value = after (arg, "default=")))
        set_option (OPTION_FRAMEWORK, value, 1);
    else if ((value = after (arg, "nccl=")))
        set_option (OPTION_NCCL, value, 1);
    else
        slurm_error ("dl: plugstack.conf: unknown argument '%.64s'", arg);
}

void options_defaults (int ac, char **av)
{
    memset (&context, 0, sizeof (context));
    set_path ("", DEFAULT_NCCL_DIR, context.nccl_dir);
    set_path ("", DEFAULT_COMMAND, context.command);
    for (int i = 0; i < ac; i++) /* "nccl=" is looked for in "nccl_dir=" */
        is_path (av[i]);
    for (int i = 0; i < ac; i++)
        if (!is_path (av[i]))
            set_default (av[i]);
}
