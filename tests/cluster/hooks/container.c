/* SPDX-License-Identifier: Apache-2.0 */
/* A SPANK plugin for containers, as a site may load next to ours. With the
 * argument "same" it registers one of our options.
 */
#include <stdio.h>
#include <string.h>

#include <slurm/spank.h>

SPANK_PLUGIN (container, 1)

static char image[256];

static int take (int val, const char *value, int remote)
{
    (void)val;
    (void)remote;
    snprintf (image, sizeof (image), "%s", value ? value : "");
    return 0;
}

int slurm_spank_init (spank_t sp, int ac, char **av)
{
    struct spank_option o = { "container-image", "IMAGE", "run in it", 1, 0, take };
    struct spank_option same = { "dl", "IMAGE", "not ours", 1, 1, take };

    if (ac > 0 && !strcmp (av[0], "same"))
        return spank_option_register (sp, &same);
    return spank_option_register (sp, &o);
}

/* Like pyxis, read the whole environment and add to it. */
int slurm_spank_task_init (spank_t sp, int ac, char **av)
{
    char rank[32];
    char **env;
    int n = 0;

    (void)ac;
    (void)av;
    if (!*image || spank_get_item (sp, S_JOB_ENV, &env) != ESPANK_SUCCESS)
        return 0;
    for (; env[n]; n++)
        ;
    if (spank_getenv (sp, "RANK", rank, sizeof (rank)) != ESPANK_SUCCESS)
        strcpy (rank, "none");
    spank_setenv (sp, "CONTAINER_SAW", rank, 1);
    for (int i = 0; i < 100; i++) { /* enough for Slurm to reallocate the array */
        char name[32];
        snprintf (name, sizeof (name), "CONTAINER_%d", i);
        spank_setenv (sp, name, image, 1);
    }
    return 0;
}
