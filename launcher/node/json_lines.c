/* SPDX-License-Identifier: Apache-2.0 */
/* Report the findings and facts of a check as lines of JSON. */
#include "launcher/node/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/node/json_message.h"

static void print_line (const struct check_place *p, json_t *line)
{
    char *text = line ? json_dumps (line, JSON_COMPACT) : NULL;

    if (text)
        dprintf (p->out, "%s\n", text);
    free (text);
    json_decref (line);
}

json_t *finding_json (enum severity severity, const char *why)
{
    char clean[WHY_TEXT];

    gather_clean (clean, sizeof (clean), why);
    return json_pack ("{s:i, s:s}", "severity", severity, "why", clean);
}

void check_finding (const struct check_place *p, enum severity severity, const char *fmt, ...)
{
    char why[WHY_TEXT];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (why, sizeof (why), fmt, ap);
    va_end (ap);
    print_line (p, finding_json (severity, why));
}

void check_stage (const struct check_place *p, const char *fmt, ...)
{
    char at[NAME_TEXT], clean[NAME_TEXT];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (at, sizeof (at), fmt, ap);
    va_end (ap);
    gather_clean (clean, sizeof (clean), at);
    print_line (p, json_pack ("{s:s}", "at", clean));
}

void check_fact (const struct check_place *p, const char *group, const char *name, json_t *value)
{
    print_line (p, json_pack ("{s:s, s:s, s:o}", "group", group, "name", name, "value",
                              value ?: json_null ()));
}
