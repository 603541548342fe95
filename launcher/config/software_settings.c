/* SPDX-License-Identifier: Apache-2.0 */
/* Check the container and the environment that an experiment file names. */
#include "launcher/config/software_settings.h"

#include <ctype.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/config/setting.h"
#include "runtime/base/nearest_word.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

/* clang-format off */
const char *const container_runtimes[] = {
    "pyxis", "enroot", "apptainer", "singularity", "charliecloud", "podman",
    NULL,
};
/* clang-format on */

bool variable_name_fits (const char *name, bool strict)
{
    if (strict)
        return *name && !isdigit ((unsigned char)*name) && !name[strspn (name, LETTERS DIGITS "_")];
    for (const char *c = name; *c; c++)
        if (*c == '=' || isspace ((unsigned char)*c) || iscntrl ((unsigned char)*c))
            return false;
    return *name;
}

static struct origin origin_in (config_setting_t *group, const char *key)
{
    const config_setting_t *s = config_setting_lookup (group, key);

    return s ? origin_of (s) : NO_ORIGIN;
}

/* The strings become words of a command line. */
static void check_word (const char *text, const char *key, struct origin origin, struct problems *p)
{
    const char *what = !text                                 ? NULL
                       : !*text                              ? "is empty"
                       : *text == '-'                        ? "begins with '-'"
                       : text[strcspn (text, " \t\n\r\x1b")] ? "has a space"
                                                             : NULL;

    if (what)
        problem_at (p, origin, "'%s' %s", key, what);
}

static void check_words (char *const *list, const char *key, struct origin origin,
                         struct problems *p)
{
    for (; list && *list; list++)
        check_word (*list, key, origin, p);
}

static void check_runtime (const struct software *s, bool has_ranks, config_setting_t *group,
                           struct problems *p)
{
    struct origin origin = origin_in (group, "container.runtime");
    const char *meant = nearest_word (s->runtime, container_runtimes);

    for (const char *const *r = container_runtimes; *r; r++)
        if (!strcmp (s->runtime, *r)) {
            if (r == container_runtimes && !has_ranks)
                problem_at (p, origin,
                            "'container.runtime': pyxis starts trials of "
                            "several ranks; use \"enroot\" for trials of one process");
            return;
        }
    problem_at (p, origin, "'container.runtime': unknown runtime '%s'%s%s%s", s->runtime,
                meant ? "; did you mean '"
                      : "; there are pyxis, enroot, apptainer, singularity, "
                        "charliecloud and podman",
                meant ? meant : "", meant ? "'?" : "");
}

/* SOURCE[:DESTINATION[:OPTIONS]] */
static void check_binds (const struct software *s, config_setting_t *group, struct problems *p)
{
    for (char **b = s->binds; b && *b; b++) {
        const char *to = strchr (*b, ':');
        if (**b == '/' && (!to || to[1] == '/') && !strchr (*b, ',') && !strpbrk (*b, " \t\n"))
            continue;
        problem_at (p, origin_in (group, "container.binds"),
                    "'container.binds': \"%s\" must be /SOURCE, /SOURCE:/DESTINATION or "
                    "/SOURCE:/DESTINATION:OPTIONS, without spaces and commas",
                    *b);
    }
}

static void check_container (const struct experiment *e, config_setting_t *group,
                             struct problems *p)
{
    const struct software *s = e->software;

    if (!s->image) {
        if (s->runtime || s->binds || s->options)
            problem_at (p, origin_in (group, "container"), "'container.image' is missing");
        return;
    }
    check_word (s->image, "container.image", s->origins.image, p);
    if (s->runtime)
        check_runtime (s, experiment_has_ranks (e), group, p);
    check_binds (s, group, p);
    if (s->conda || s->venv)
        problem_at (p, s->conda ? s->origins.conda : s->origins.venv,
                    "'environment.%s' belongs to this machine and cannot be used with 'container': "
                    "the image has its own programs",
                    s->conda ? "conda" : "venv");
}

void software_settings_check (struct experiment *e, config_setting_t *group, struct problems *p)
{
    struct software *s = e->software;

    s->origins.image = origin_in (group, "container.image");
    if (!s->origins.image.line && !s->origins.image.option)
        s->origins.image = origin_in (group, "container");
    s->origins.modules = origin_in (group, "environment.modules");
    s->origins.conda = origin_in (group, "environment.conda");
    s->origins.venv = origin_in (group, "environment.venv");
    check_container (e, group, p);
    check_words (s->modules, "environment.modules", s->origins.modules, p);
    check_word (s->conda, "environment.conda", s->origins.conda, p);
    check_word (s->venv, "environment.venv", s->origins.venv, p);
    if (s->conda && s->venv)
        problem_at (p, s->origins.venv,
                    "'environment.conda' and 'environment.venv' cannot be used together: leave one "
                    "of them out");
}
