/* SPDX-License-Identifier: Apache-2.0 */
/* Report the versions of software that the ranks must agree on. */
#include "launcher/nodecheck/versions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "config.h"
#include "launcher/sys/subprocess.h"

static void
version (const struct check_place *p, const char *name, const char *value)
{
    check_fact (p, "versions", name, json_string (value));
}

/* The one that the linker finds; PyTorch's wheels may have another. */
static void find_nccl (const struct check_place *p)
{
    void *library = dlopen ("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
    int (*get) (int *);
    char text[32];
    void *f;
    int v = 0;

    if (!library || !(f = dlsym (library, "ncclGetVersion")))
        return;
    memcpy (&get, &f, sizeof (f));
    if (get (&v) != 0)
        return;
    snprintf (text,
              sizeof (text),
              "%d.%d.%d",
              v < 10000 ? v / 1000 : v / 10000,
              v < 10000 ? v % 1000 / 100 : v % 10000 / 100,
              v % 100);
    version (p, "NCCL", text);
}

void check_versions (const struct check_place *p)
{
    struct utsname u;

    if (uname (&u) == 0)
        version (p, "kernel", u.release);
    version (p, "slurm-dl", PACKAGE_VERSION);
    check_stage (p, "libnccl.so.2");
    find_nccl (p);
}

/* The program that the user's PATH finds: it is the one that trains.  A
 * torch.py in the folder in which it is called may be anybody's.
 */
void check_python (const struct check_place *p)
{
    static const char program[] = "import sys\n"
                                  "sys.path[:] = [p for p in sys.path if p]\n"
                                  "print(sys.version.split()[0])\n"
                                  "try:\n"
                                  "    import torch\n"
                                  "    print(torch.__version__)\n"
                                  "except ImportError:\n"
                                  "    pass";
    struct command c = { .keeps_job = true, .no_errors = true };
    char text[256];
    char *next = text;

    check_stage (p, "python3");
    command_add (&c, "python3", NULL);
    command_add (&c, "-c", NULL);
    command_add (&c, program, NULL);
    command_run (&c, NULL, text, sizeof (text));
    command_free (&c);
    for (int i = 0; i < 2 && *next; i++) {
        char *line = strsep (&next, "\n");
        version (p, i ? "PyTorch" : "Python", line);
        next = next ?: "";
    }
}
