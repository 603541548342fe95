/* SPDX-License-Identifier: Apache-2.0 */
/* State of the plugin in a process: option values, the task's variables, messages. */
#include "spank/context.h"

#include <ctype.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "runtime/network/nccl.h"
#include "runtime/rank/variables.h"

static enum variable_state get_variable (void *arg, const char *name, char *buf, int size)
{
    spank_err_t rv = spank_getenv (arg, name, buf, size);

    return rv == ESPANK_SUCCESS       ? VARIABLE_COPIED
           : rv == ESPANK_ENV_NOEXIST ? VARIABLE_UNSET
                                      : VARIABLE_TOO_LONG;
}

static void set_variable (void *arg, const char *name, const char *value)
{
    spank_setenv (arg, name, value, 1);
}

static void unset_variable (void *arg, const char *name)
{
    spank_unsetenv (arg, name);
}

struct variables variables_of (spank_t sp)
{
    return (struct variables){ get_variable, set_variable, unset_variable, sp };
}

int variable_text (spank_t sp, const char *name, char *buf, int size)
{
    const struct variables v = variables_of (sp);

    return variables_text (&v, name, buf, size);
}

long variable_number (spank_t sp, const char *name)
{
    const struct variables v = variables_of (sp);

    return variables_number (&v, name);
}

struct plugin_context *context_own (void)
{
    static struct plugin_context context;

    return &context;
}

const char *option_value (int row)
{
    return context_own ()->value[row];
}

bool option_is_on (int row)
{
    const char *value = option_value (row);

    return *value && strcmp (value, "off");
}

bool option_is_given (int row)
{
    return *context_own ()->given[row];
}

void option_switch_off (int row)
{
    *context_own ()->value[row] = '\0';
}

const char *option_nccl_dir (void)
{
    return context_own ()->policy.nccl_dir;
}

int option_folder (char *buf, size_t size)
{
    const char *dir = context_own ()->policy.monitor_dir;
    int n = snprintf (buf, size, "%s/%ld", dir, (long)geteuid ());

    if (!*dir || n < 0 || (size_t)n >= size)
        return -1;
    return access (buf, W_OK | X_OK) == 0 || (errno == ENOENT && mkdir (buf, 0700) == 0)
               ? 0
               : access (buf, W_OK | X_OK);
}

const char *option_command (void)
{
    return context_own ()->policy.command;
}

static int find_build (struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t here = (uintptr_t)&context_own - info->dlpi_addr;
    char *text = arg;
    bool ours = false;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        ours |= info->dlpi_phdr[i].p_type == PT_LOAD
                && here - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz;
    for (int i = 0; ours && i < info->dlpi_phnum; i++) {
        const ElfW (Phdr) *h = &info->dlpi_phdr[i];
        const ElfW (Nhdr) *n = (const void *)(info->dlpi_addr + h->p_vaddr);
        const unsigned char *id = (const unsigned char *)(n + 1) + 4;
        if (h->p_type == PT_NOTE && h->p_memsz >= sizeof (*n) + 12 && n->n_type == NT_GNU_BUILD_ID
            && n->n_namesz == 4) {
            for (int k = 0; k < 8; k++)
                snprintf (text + 2 * (size_t)k, 3, "%02x", id[k]);
            return 1;
        }
    }
    return ours;
}

void plugin_build (char build[PLUGIN_BUILD])
{
    snprintf (build, PLUGIN_BUILD, "unknown");
    dl_iterate_phdr (find_build, build);
}

void plugin_complain (const char *fmt, ...)
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

static bool is_builtin (const char *profile)
{
    return !strcmp (profile, "auto") || !strcmp (profile, "none");
}

/* Also look for the file of the profile, except on a node, where this runs as
 * root.  A login node may have no profiles at all; then only a node can tell.
 */
static int check_profile (const char *value, char *why, size_t size)
{
    const char *dir = option_nccl_dir ();
    char path[NCCL_PATH];

    if (nccl_check_name (value) < 0) {
        snprintf (why, size, "not a valid profile name");
        return -1;
    }
    nccl_path (path, dir, value);
    if (spank_context () == S_CTX_REMOTE || is_builtin (value) || access (dir, R_OK) < 0
        || access (path, F_OK) == 0)
        return 0;
    snprintf (why, size, "no such profile in %.100s", dir);
    return -1;
}

int option_check (int row, const char *value, char *why, size_t size)
{
    if (strnlen (value, VALUE_MAX + 1) > VALUE_MAX) {
        snprintf (why, size, "the value is too long");
        return -1;
    }
    if (plugin_option_check (row, value, why, size) == 0
        && (row != PLUGIN_NCCL || check_profile (value, why, size) == 0))
        return 0;
    if (!plugin_options[row].words)
        snprintf (why + strlen (why), size - strlen (why), "; see dl-spank(7)");
    return -1;
}
