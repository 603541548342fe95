/* SPDX-License-Identifier: Apache-2.0 */
/* default=auto: is the program one whose ranks train together? */
#include "spank/meant.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spank/variable.h"

/* Imports of a script, and the libraries of a program, are at its beginning. */
enum { TEXT = 128 * 1024, FILES = 8 };

struct evidence {
    bool together; /* the ranks are to meet by RANK and MASTER_ADDR */
    bool apart;    /* by something else, or never */
};

static bool has (const char *text, size_t n, const char *word)
{
    return memmem (text, n, word, strlen (word)) != NULL;
}

static bool has_any (const char *text, size_t n, const char *const *words)
{
    for (; *words; words++)
        if (has (text, n, *words))
            return true;
    return false;
}

static void look (struct evidence *e, const char *text, size_t n)
{
    static const char *const together[] = {
        "init_process_group",         "jax.distributed.init",
        "init_distributed",           "DistributedDataParallel",
        "torch.distributed.run",      "torch.distributed.launch",
        "accelerate.commands.launch", NULL
    };
    static const char *const apart[] = { "SLURM_PROCID", "SLURM_LOCALID", "mpi4py", "libmpi.so",
                                         "libmpich",     "horovod",       NULL };

    e->together = e->together || has_any (text, n, together);
    e->apart = e->apart || has_any (text, n, apart);
}

/* Returns whether there is such a file. */
static bool read_file (struct evidence *e, const char *path)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = fd < 0 ? NULL : malloc (TEXT);
    struct stat st;
    bool found = text && fstat (fd, &st) == 0 && S_ISREG (st.st_mode);
    ssize_t n = found ? read (fd, text, TEXT) : 0;

    if (n > 0)
        look (e, text, (size_t)n);
    free (text);
    if (fd >= 0)
        close (fd);
    return found;
}

/* As the shell finds it. */
static void read_program (struct evidence *e, spank_t sp, const char *name)
{
    char list[4096], path[PATH_MAX];
    char *next = NULL;

    if (strchr (name, '/')) {
        read_file (e, name);
        return;
    }
    variable_text (sp, "PATH", list, sizeof (list));
    for (char *d = strtok_r (list, ":", &next); d; d = strtok_r (NULL, ":", &next)) {
        if (snprintf (path, sizeof (path), "%s/%s", d, name) >= (int)sizeof (path)
            || access (path, X_OK) < 0)
            continue;
        read_file (e, path);
        return;
    }
}

static bool is_launcher (const char *word)
{
    static const char *const names[] = { "torchrun", "accelerate", "deepspeed" };
    const char *name = strrchr (word, '/') ? strrchr (word, '/') + 1 : word;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (!strcmp (name, names[i]))
            return true;
    return false;
}

bool meant_for (spank_t sp, bool named)
{
    struct evidence e = { named, false };
    char **argv = NULL;
    int argc = 0;
    int files = 0;

    if (spank_get_item (sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1 || !argv
        || !argv[0])
        return named;
    e.together = e.together || is_launcher (argv[0]);
    read_program (&e, sp, argv[0]);
    /* a program may be the word of another one: timeout, a container, a profiler */
    for (int i = 1; i < argc && argv[i]; i++) {
        look (&e, argv[i], strlen (argv[i]));
        e.together = e.together || is_launcher (argv[i]);
        if (*argv[i] != '-' && files < FILES && read_file (&e, argv[i]))
            files++;
    }
    return e.together && !e.apart;
}
