/* SPDX-License-Identifier: Apache-2.0 */
/* dl import: files of other systems as experiment files and batch scripts. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/sys/python.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"

static int add_option (char ***words, const char *name, const char *value)
{
    return value ? strings_addf (words, "--%s=%s", name, value) : 0;
}

/* What the package is told; it calls this program to check what it wrote. */
static char **import_arguments (const struct command_line *line)
{
    const struct import_options *opt = line->options;
    char self[PATH_MAX];
    char **words = NULL;
    bool bad;

    own_program (self);
    bad = add_option (&words, "dl", self) < 0 || add_option (&words, "output", opt->output) < 0
          || add_option (&words, "from", opt->from) < 0
          || add_option (&words, "entrypoint", opt->entrypoint) < 0
          || (opt->coverage && strings_add (&words, "--coverage") < 0)
          || strings_add (&words, "--") < 0 || strings_add_all (&words, line->args) < 0;
    if (!bad)
        return words;
    strings_free (words);
    return NULL;
}

int cmd_import (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    char **words = import_arguments (line);
    pid_t pid;

    if (!words) {
        complain ("%s", strerror (errno));
        return EXIT_IO;
    }
    pid = python_start ("slurmdl.imports", words, -1, &err);
    strings_free (words);
    return pid < 0 ? fail (&err) : python_wait (pid, "dl import");
}
