/* SPDX-License-Identifier: Apache-2.0 */
/* srun (pyxis) starts the ranks of a trial in containers. */
#include "launcher/code/pyxis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/code/binds.h"
#include "launcher/code/image.h"
#include "launcher/config/software_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/strings.h"

/* As `dl rank` does it (launcher/trainer/step.c), which is not in the
 * image: srun passes SIGUSR2 on, and the end after a SIGTERM of Slurm's own is
 * no result.
 */
#define RANK                                                                                       \
    "a= p=; trap 'a=1 t=1; kill -TERM $!' USR2; trap 'p=1 t=1' TERM; "                             \
    "(trap '' USR2; exec \"$@\") & while t=; wait $!; s=$?; [ \"$t\" ]; do "                       \
    ":; done; [ \"$a\" ] && exit 0; [ \"$p\" ] && { sleep 300; exit 75; }; "                       \
    "exit $s"

bool container_by_srun (const struct software *s, const char *dir)
{
    char *image = container_image (s, dir);
    bool takes = image && (image_kind_of (image) & (SQUASHFS | REFERENCE));
    char text[256 << 10];

    free (image);
    if (s->runtime || !takes)
        return s->runtime && !strcmp (s->runtime, container_runtimes[0]);
    slurm_srun_says ("--help", text, sizeof (text));
    return strstr (text, "--container-mounts");
}

/* OPTION=A,B; the names of variables, or folders as SOURCE:DESTINATION. */
static int add_list (char ***words, const char *option, char *const *const lists[2], bool names)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);
    const char *comma = "=";
    int rv;

    if (!f)
        return -1;
    fputs (option, f);
    for (int i = 0; i < 2; i++)
        for (char *const *l = lists[i]; l && *l; l++, comma = ",")
            if (names)
                fprintf (f, "%s%.*s", comma, (int)strcspn (*l, "="), *l);
            else if (strchr (*l, ':'))
                fprintf (f, "%s%s", comma, *l);
            else
                fprintf (f, "%s%s:%s", comma, *l, *l);
    rv = fclose (f) == 0 && (*comma == '=' || strings_add (words, text) == 0) ? 0 : -1;
    free (text);
    return rv;
}

int container_srun_words (const struct software *s, const char *dir, char *const *folders,
                          char *const *variables, char ***words, struct slurmdl_error *err)
{
    static const char *const shell[] = { "/bin/sh", "-c", RANK, "sh", NULL };
    char *image = container_image (s, dir);
    char **binds = NULL;
    int rv = image ? container_binds (&binds, dir, folders, NULL, err) : -1;

    if (rv == 0)
        rv =
            strings_addf (words, "--container-image=%s", image)
            | strings_addf (words, "--container-workdir=%s", dir)
            | add_list (words, "--container-mounts", (char *const *const[2]){ binds, s->binds },
                        false)
            | add_list (words, "--container-env", (char *const *const[2]){ variables, NULL }, true);
    if (rv == 0)
        rv = strings_add_all (words, s->options) | strings_add_all (words, (char *const *)shell);
    free (image);
    strings_free (binds);
    return rv;
}
