/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel the jobs of an experiment. */
#include "launcher/executor/stop.h"

#include <string.h>

#include "launcher/sys/subprocess.h"
#include "launcher/trust/trust.h"
#include "runtime/base/error.h"

enum { TIMEOUT = 30 /* s for scancel */ };

/* The first line that says more than that the job is over; NULL: none. */
static const char *complaint_of (char *text)
{
    char *save = NULL;

    for (char *line = strtok_r (text, "\n", &save); line; line = strtok_r (NULL, "\n", &save))
        if (!strstr (line, "Invalid job id") && !strstr (line, "already"))
            return line;
    return NULL;
}

int executor_cancel (const struct sweep *s, const char *option, struct slurmdl_error *err)
{
    struct command c = { .timeout = TIMEOUT };
    char text[4096];
    const char *why;
    int first;
    int status;

    command_add (&c, "scancel", NULL);
    if (option)
        command_add (&c, option, NULL);
    command_add (&c, "--", NULL);
    first = c.n;
    /* of very many the last ones: the others are over */
    for (size_t i = s->nsubmits; i > 0; i--)
        if (trust_has_job (s, s->submits[i - 1].job))
            command_add (&c, s->submits[i - 1].job, NULL);
    if (c.n == first) {
        command_free (&c);
        return 0;
    }
    status = command_run (&c, NULL, text, sizeof (text));
    command_free (&c);
    if (status == 127)
        return errorf (err, "there is no scancel here");
    why = complaint_of (text);
    if (status == 0 || (status > 0 && !why))
        return 0;
    return errorf (err, "%s", why ? why : "scancel gave no answer");
}
