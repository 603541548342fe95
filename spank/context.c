/* SPDX-License-Identifier: Apache-2.0 */
/* State of the plugin in a process, and its messages. */
#include "spank/context.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return access (buf, W_OK | X_OK) == 0
                   || (errno == ENOENT && mkdir (buf, 0700) == 0)
               ? 0
               : access (buf, W_OK | X_OK);
}

const char *option_command (void)
{
    return context_own ()->policy.command;
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
