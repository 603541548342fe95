/* SPDX-License-Identifier: Apache-2.0 */
/* State of the plugin in a process, and its messages. */
#include "spank/context.h"

#include <ctype.h>
#include <errno.h>
#include <link.h>
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
