/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that runs a trial in a container, for each runtime. */
#include "launcher/code/container.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/code/activate.h"
#include "launcher/code/binds.h"
#include "launcher/code/image.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

extern char **environ;

/* The first process of a name space for processes ignores SIGTERM, and would
 * not pass it on; kill -1 reaches all others there.
 */
#define PASS_SIGNALS                                                                               \
    "trap 't=1; kill -TERM -1' TERM; \"$@\" & while t=; wait $!; s=$?; "                           \
    "[ \"$t\" ]; do :; done; exit $s"

#define IN_FOLDER "cd \"$1\" && shift && exec \"$@\""

/* clang-format off */
static const struct runtime {
    const char *name, *program;
    int images;           /* kinds that it takes */
    const char *words[10]; /* after the program */
    const char *gpus;     /* a word where the node has NVIDIA's */
    const char *folder;   /* option for the working folder; NULL: IN_FOLDER */
    const char *bind, *bind_end;
    const char *variable; /* option for a variable that goes in; NULL: all do */
    const char *forget;   /* option for one that does not */
    const char *rootfs;   /* before an image that is a folder */
    const char *prefix;   /* of a reference without "://" */
    const char *end;      /* after the image */
    const char *shared[5]; /* folders of the machine that it has anyway */
    bool named;           /* kill(2) does not end it; PASS_SIGNALS */
} runtimes[] = {
    { "enroot", "enroot", SQUASHFS, { "start" },
      .bind = "--mount", .bind_end = ":x-create=auto,rbind", .variable = "--env" },
    { "apptainer", "apptainer", SIF | SQUASHFS | FOLDER | REFERENCE, { "exec" },
      .gpus = "--nv", .folder = "--pwd", .bind = "--bind", .prefix = "docker://" },
    { "singularity", "singularity", SIF | SQUASHFS | FOLDER | REFERENCE, { "exec" },
      .gpus = "--nv", .folder = "--pwd", .bind = "--bind", .prefix = "docker://" },
    { "charliecloud", "ch-run", SQUASHFS | FOLDER | REFERENCE, { NULL },
      .folder = "--cd", .bind = "--bind", .forget = "--unset-env", .end = "--",
      .shared = { "/tmp", "/dev", "/proc", "/sys" } },
    { "podman", "podman", FOLDER | REFERENCE,
      { "run", "--rm", "--network=host", "--ulimit=host", "--cgroups=disabled",
        "--security-opt=label=disable", "--log-driver=none", "--entrypoint=" },
      .gpus = "--device=nvidia.com/gpu=all", .folder = "--workdir",
      .bind = "--volume", .variable = "--env", .rootfs = "--rootfs", .named = true },
    { NULL },
};

/* Of the machine: in the image they would name what is not there. */
static const char *const of_machine[] = {
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH", NULL,
};
/* clang-format on */

static int add_two (char ***list, const char *option, const char *value)
{
    return strings_add (list, option) < 0 || strings_add (list, value) < 0 ? -1 : 0;
}

/* ---- which runtime ---- */

static const struct runtime *find_runtime (const struct software *s, const char *image,
                                           const char *path, struct slurmdl_error *err)
{
    for (const struct runtime *r = runtimes; r->name; r++) {
        char *program;
        if (s->runtime ? strcmp (s->runtime, r->name) : !(r->images & image_kind_of (image)))
            continue;
        if ((program = program_path (path, r->program))) {
            free (program);
            return r;
        }
    }
    errno = ENOENT;
    errorf (err, "container: %s%s",
            s->runtime ? "there is no program in PATH of the runtime "
                       : "none of enroot, apptainer, singularity, ch-run and "
                         "podman that is in PATH takes the image ",
            s->runtime ? s->runtime : image);
    return NULL;
}

const char *container_runtime (const struct software *s, const char *dir, const char *path,
                               struct slurmdl_error *err)
{
    char *image = container_image (s, dir);
    const struct runtime *r = image ? find_runtime (s, image, path, err) : NULL;

    if (!image)
        errorf (err, "container: there is no image '%s'", s->image);
    free (image);
    return r ? r->name : NULL;
}

static int add_bind (char ***words, const struct runtime *r, const char *bind)
{
    const char *to = strchr (bind, ':');
    bool has_options = to && strchr (to + 1, ':');

    return strings_add (words, r->bind) < 0
               ? -1
               : strings_addf (words, "%s%s%s%s", bind, to ? "" : ":", to ? "" : bind,
                               r->bind_end && !has_options ? r->bind_end : "");
}

/* ---- its variables ---- */

/* By name: what a command line says everybody can read. */
static int add_variables (char ***words, const struct runtime *r)
{
    char name[256];
    int rv = 0;

    for (const char *const *n = of_machine; r->forget && *n; n++)
        rv |= add_two (words, r->forget, *n);
    for (char **v = environ; r->variable && *v && rv == 0; v++) {
        size_t n = strspn (*v, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (n == 0 || n >= sizeof (name) || (*v)[n] != '=')
            continue;
        snprintf (name, sizeof (name), "%.*s", (int)n, *v);
        if (!strings_contain (of_machine, name) && strcmp (name, "HOME") && strcmp (name, "_"))
            rv = add_two (words, r->variable, name);
    }
    return rv;
}

static bool has_gpus (void)
{
    const char *visible = getenv ("CUDA_VISIBLE_DEVICES");

    return (visible && isdigit ((unsigned char)*visible))
           || (visible && !strncmp (visible, "GPU-", 4))
           || (visible && !strncmp (visible, "MIG-", 4))
           || (!visible && access ("/dev/nvidiactl", F_OK) == 0);
}

/* ---- the command line ---- */

static int add_options (char ***words, const struct software *s, const struct runtime *r,
                        const char *dir, char *const *binds)
{
    int rv = strings_add_all (words, (char *const *)r->words);

    if (r->gpus && has_gpus ())
        rv |= strings_add (words, r->gpus);
    if (r->folder)
        rv |= add_two (words, r->folder, dir);
    for (; binds && *binds; binds++)
        rv |= add_bind (words, r, *binds);
    for (char **b = s->binds; b && *b; b++)
        rv |= add_bind (words, r, *b);
    rv |= add_variables (words, r);
    return rv | strings_add_all (words, s->options);
}

static int add_image (char ***words, const struct runtime *r, const char *image)
{
    enum image_kind kind = image_kind_of (image);
    int rv = 0;

    if (kind == FOLDER && r->rootfs)
        rv = strings_add (words, r->rootfs);
    rv |= strings_addf (words, "%s%s",
                        kind == REFERENCE && r->prefix && !strstr (image, "://") ? r->prefix : "",
                        image);
    return r->end ? rv | strings_add (words, r->end) : rv;
}

static int add_shell (char ***words, const char *script, const char *argument)
{
    int rv = strings_add (words, "/bin/sh");

    rv |= add_two (words, "-c", script) | strings_add (words, "sh");
    return argument ? rv | strings_add (words, argument) : rv;
}

static char *container_name (void)
{
    char *name = NULL;

    return asprintf (&name, "dl-%ld-%.0f", (long)getpid (), monotonic () * 1e6) < 0 ? NULL : name;
}

/* Charliecloud shows TMPDIR as /tmp, and wants to have USER; a program of the
 * machine must not be loaded into all of the image's.
 */
static void set_variables (const struct runtime *r)
{
    unsetenv ("LD_PRELOAD");
    unsetenv ("PYTHONHOME");
    if (*r->shared) {
        setenv ("TMPDIR", "/tmp", 1);
        setenv ("USER", user_name (), 0);
    }
    if (!strcmp (r->name, "enroot") && has_gpus ())
        setenv ("NVIDIA_VISIBLE_DEVICES", "all", 0);
}

static char **build (const struct software *s, const struct runtime *r, const char *image,
                     const char *dir, char *const *binds, char *const *command, char **name)
{
    char **words = NULL;
    int rv = strings_add (&words, r->program);

    set_variables (r);
    rv |= add_options (&words, s, r, dir, binds);
    if (r->named && (*name = container_name ()))
        rv |= add_two (&words, "--name", *name);
    rv |= add_image (&words, r, image);
    if (r->named)
        rv |= add_shell (&words, PASS_SIGNALS, NULL);
    if (!r->folder)
        rv |= add_shell (&words, IN_FOLDER, dir);
    rv |= strings_add_all (&words, command);
    if (rv == 0)
        return words;
    strings_free (words);
    return NULL;
}

char **container_command (const struct software *s, char *const *folders, char *const *command,
                          char **name, struct slurmdl_error *err)
{
    char dir[PATH_MAX];
    char *image = NULL;
    char **binds = NULL;
    char **words = NULL;
    const struct runtime *r = NULL;

    *name = NULL;
    if (!getcwd (dir, sizeof (dir)))
        errorf (err, "container: no working folder: %s", strerror (errno));
    else if (!(image = container_image (s, dir)))
        errorf (err, "container: there is no image '%s'", s->image);
    else if ((r = find_runtime (s, image, getenv ("PATH"), err))
             && container_binds (&binds, dir, folders, r->shared, err) == 0
             && !(words = build (s, r, image, dir, binds, command, name)))
        errorf (err, "out of memory");
    strings_free (binds);
    free (image);
    return words;
}
