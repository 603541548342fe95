/* SPDX-License-Identifier: Apache-2.0 */
/* Look whether the container and environment of the trials are there. */
#include "launcher/code/software_check.h"

#include <errno.h>
#include <stdlib.h>

#include "launcher/code/activate.h"
#include "launcher/code/container.h"
#include "launcher/code/image.h"
#include "launcher/code/pyxis.h"
#include "launcher/config/queries.h"

static void check_container (struct experiment *e, bool local, struct problems *p)
{
    const struct software *s = &e->software;
    struct slurmdl_error err = { "" };
    char *image = container_image (s, e->dir);

    if (!image)
        problem_at (p, s->origins.image, "'container': there is no image '%s'%s%s", s->image,
                    *s->image == '/' ? "" : " in ", *s->image == '/' ? "" : e->dir);
    else if (local && software_is_loaded (s)
             && !container_runtime (s, e->dir, software_variable (s, "PATH"), &err))
        problem_at (p, s->origins.image, "%s", err.text);
    free (image);
}

void software_check (struct experiment *e, bool local, bool loads, struct problems *p)
{
    struct software *s = &e->software;
    struct slurmdl_error err = { "" };
    struct origin where = NO_ORIGIN;

    if (loads && software_activate (s, e->dir, &where, &err) < 0)
        problem_at (p, where, "%s", err.text);
    if (s->image)
        check_container (e, local, p);
}

/* Of ranks on other nodes each one finds its own. */
static int find_runtime (const struct experiment *e, struct slurmdl_error *err)
{
    const struct software *s = &e->software;

    if (!s->image || experiment_has_ranks (e)
        || container_runtime (s, e->dir, software_variable (s, "PATH"), err))
        return 0;
    errno = EINVAL;
    return -1;
}

int software_enter (struct experiment *e, struct slurmdl_error *err)
{
    struct software *s = &e->software;

    if (s->image && experiment_has_ranks (e))
        s->by_srun = container_by_srun (s, e->dir);
    return software_activate (s, e->dir, NULL, err) < 0 ? -1 : find_runtime (e, err);
}
