/* SPDX-License-Identifier: Apache-2.0 */
/* dl log: log metrics from a shell script. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/sys/messages.h"
#include "launcher/trainer/trainer.h"

enum { MESSAGE_MAX = 16000 };

static int add_metric (FILE *f, const char *arg)
{
    const char *eq = strchr (arg, '=');
    char *end;
    double value;

    if (eq && eq > arg && eq[1] && eq - arg < 64 && strcspn (arg, " \t\n") > (size_t)(eq - arg)) {
        value = strtod (eq + 1, &end);
        if (!*end) {
            fprintf (f, "%.*s %.17g\n", (int)(eq - arg), arg, value);
            return 0;
        }
    }
    complain ("log: '%s' is not NAME=NUMBER", arg);
    return -1;
}

int cmd_log (const struct command_line *line)
{
    const struct log_options *opt = line->options;
    const char *socket = getenv ("DL_SOCKET");
    struct slurmdl_error err = { "" };
    char text[MESSAGE_MAX] = "";
    FILE *f;
    int rv = 0;

    if (!socket || !*socket) {
        complain (socket ? "log: the worker has no socket; see its own log"
                         : "log: not inside a trial (DL_SOCKET is not set): "
                           "start the script with dl run; 'dl logs' prints the log of a trial");
        return EXIT_USAGE;
    }
    if (!(f = fmemopen (text, sizeof (text), "w")))
        return fail (&err);
    fprintf (f, "%lld\n", (long long)opt->step);
    for (int i = 0; i < line->nargs && rv == 0; i++)
        rv = add_metric (f, line->args[i]);
    if (fclose (f) != 0 && rv == 0) {
        complain ("log: too many metrics for one call");
        rv = -1;
    }
    if (rv < 0)
        return EXIT_USAGE;
    return log_socket_send (socket, text, &err) < 0 ? fail (&err) : EXIT_OK;
}
