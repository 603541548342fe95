/* SPDX-License-Identifier: Apache-2.0 */
/* dl import: convert files of other systems to experiments and jobs. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/python.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"

static void add_option (char ***words, const char *name, const char *value)
{
    if (value)
        strings_addf (words, "--%s=%s", name, value);
}

/* Build the arguments of the Python package, which runs this program to check what it
 * wrote.
 */
static char **import_arguments (const struct command_line *line)
{
    const struct import_options *opt = line->options;
    char self[PATH_MAX];
    char **words = NULL;

    own_program (self);
    add_option (&words, "dl", self);
    add_option (&words, "output", opt->output);
    add_option (&words, "from", opt->from);
    add_option (&words, "entrypoint", opt->entrypoint);
    if (opt->coverage)
        strings_add (&words, "--coverage");
    strings_add (&words, "--");
    strings_add_all (&words, line->args);
    return words;
}

int cmd_import (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    char **words = import_arguments (line);
    pid_t pid = python_start ("slurmdl.imports", words, -1, &err);

    strings_free (words);
    return pid < 0 ? fail (&err) : python_wait (pid, "dl import");
}
