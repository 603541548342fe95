/* SPDX-License-Identifier: Apache-2.0 */
/* In a task, as the user: the site's network variables, and a word on those
 * that the user exported.
 */
#include "runtime/nccl.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/fabric.h"
#include "spank/context.h"

enum { TEXT = 4096, PATH_SIZE = 320 };

#define SYSFS     "/sys"
#define NCCL_CONF "/etc/nccl.conf"

static bool is_builtin (const char *profile)
{
    return !strcmp (profile, "auto") || !strcmp (profile, "none");
}

static void
profile_path (char path[static PATH_SIZE], const char *dir, const char *name)
{
    snprintf (path, PATH_SIZE, "%s/%s.conf", dir, name);
}

/* A login node may have no profiles at all: then only a node can tell. */
int nccl_check (const char *value, char *why, size_t size)
{
    const char *dir = option_nccl_dir ();
    char path[PATH_SIZE];

    if (nccl_check_name (value) < 0) {
        snprintf (why, size, "no name of a profile");
        return -1;
    }
    profile_path (path, dir, value);
    if (spank_context () == S_CTX_REMOTE || is_builtin (value)
        || access (dir, R_OK) < 0 || access (path, F_OK) == 0)
        return 0;
    snprintf (why, size, "no such profile in %.100s", dir);
    return -1;
}

/* ---- the profile ---- */

static void say (void *arg, const char *line)
{
    if (*(bool *)arg)
        slurm_error ("dl: %s", line);
}

static void read_named (const char *name, struct nccl_profile *p, bool loud)
{
    char path[PATH_SIZE];

    profile_path (path, option_nccl_dir (), name);
    if (nccl_read (path, p, say, &loud) < 0 && loud)
        slurm_error ("dl: --dl-nccl=%s: nothing is set: %s: %s",
                     name,
                     path,
                     strerror (errno));
}

/* What the administrator gave NCCL itself is not overridden by our defaults. */
static void drop_configured (struct nccl_profile *p)
{
    struct nccl_profile conf = { .n = 0 };
    int n = 0;

    if (nccl_read (NCCL_CONF, &conf, NULL, NULL) < 0)
        return;
    for (int i = 0; i < p->n; i++) {
        bool is_there = false;
        for (int j = 0; j < conf.n; j++)
            if (!strcmp (conf.settings[j].name, p->settings[i].name))
                is_there = true;
        if (!is_there)
            p->settings[n++] = p->settings[i];
    }
    p->n = n;
}

static void
read_auto (const struct fabric *f, struct nccl_profile *p, bool loud)
{
    char path[PATH_SIZE];

    profile_path (path, option_nccl_dir (), fabric_names[f->kind]);
    if (access (path, F_OK) == 0) {
        read_named (fabric_names[f->kind], p, loud);
        return;
    }
    nccl_defaults (f, p);
    drop_configured (p);
}

/* ---- the node ---- */

/* In a network namespace with the host's /sys the interfaces there are not
 * those of the task: better to know none.
 */
static void read_fabric (struct fabric *f)
{
    fabric_read (SYSFS, f);
    for (int i = 0; i < f->ninterfaces; i++)
        if (if_nametoindex (f->interfaces[i].name)
            != (unsigned)f->interfaces[i].index) {
            f->ninterfaces = 0;
            return;
        }
}

static bool is_rank_0 (spank_t sp)
{
    char rank[16];

    return spank_getenv (sp, "SLURM_PROCID", rank, sizeof (rank))
               == ESPANK_SUCCESS
           && !strcmp (rank, "0");
}

/* ---- setting ---- */

static void lint (spank_t sp, const char *ours, const struct fabric *f)
{
    char lines[NCCL_LINES][NCCL_LINE];
    char **env = NULL;
    int n = 0;

    if (spank_get_item (sp, S_JOB_ENV, &env) == ESPANK_SUCCESS && env)
        n = nccl_lint (env, ours, f, lines);
    for (int i = 0; i < n; i++)
        slurm_error ("dl: %s", lines[i]);
}

/* The user's exports stay; what this plugin set in an outer step does not. */
static void
set_profile (spank_t sp, const char *stale, const struct nccl_profile *p)
{
    char have[TEXT];
    char ours[TEXT] = "";
    size_t used = 0;

    for (int i = 0; i < p->n; i++) {
        const struct nccl_setting *s = &p->settings[i];
        if (spank_getenv (sp, s->name, have, sizeof (have))
                != ESPANK_ENV_NOEXIST
            && !nccl_is_listed (stale, s->name))
            continue;
        spank_setenv (sp, s->name, s->value, 1);
        used += (size_t)snprintf (ours + used,
                                  sizeof (ours) - used,
                                  "%s%s",
                                  used ? "," : "",
                                  s->name);
    }
    spank_setenv (sp, "DL_NCCL_SET", ours, 1);
}

void nccl_task (spank_t sp)
{
    const char *name = option_value (OPTION_NCCL);
    struct nccl_profile profile = { .n = 0 };
    char text[NCCL_VALUE];
    char stale[TEXT] = "";
    bool loud = is_rank_0 (sp);
    struct fabric f;

    if (!strcmp (name, "none"))
        return;
    if (spank_getenv (sp, "DL_NCCL_SET", stale, sizeof (stale))
        != ESPANK_SUCCESS)
        *stale = '\0';
    read_fabric (&f);
    if (!strcmp (name, "auto"))
        read_auto (&f, &profile, loud);
    else
        read_named (name, &profile, loud);
    if (loud)
        lint (sp, stale, &f);
    set_profile (sp, stale, &profile);
    fabric_text (&f, text, sizeof (text));
    spank_setenv (sp, "DL_NCCL_FABRIC", text, 1);
}
