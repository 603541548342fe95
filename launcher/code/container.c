/* SPDX-License-Identifier: Apache-2.0 */
/* Containers: the image, the runtime, its command line, and srun's options for pyxis. */
#include "launcher/code/code.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/software_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

/* ---- the image ---- */

static bool must_be_file (const char *image)
{
    static const char *const ends[] = { ".sif", ".simg", ".sqsh", ".squashfs", ".img", NULL };

    for (const char *const *e = ends; *e; e++)
        if (text_ends_with (image, *e))
            return !strstr (image, "://");
    return *image == '/' || *image == '.';
}

char *container_image (const struct software *s, const char *dir)
{
    char path[PATH_MAX];
    char full[PATH_MAX];

    path_from (path, dir, s->image);
    if (realpath (path, full) && access (full, R_OK) == 0)
        return xstrdup (full);
    return must_be_file (s->image) ? NULL : xstrdup (s->image);
}

/* Report that container_image() found none: it was removed after the experiment was created. */
static void no_image (const struct software *s, struct slurmdl_error *err)
{
    errorf (err, "container: there is no image '%s'", s->image);
    errno = ENOENT;
}

/* The kind of an image that container_image() returned. */
static enum image_kind image_kind_of (const char *image)
{
    struct stat st;

    if (*image != '/' || stat (image, &st) < 0)
        return REFERENCE;
    if (S_ISDIR (st.st_mode))
        return FOLDER;
    return text_ends_with (image, ".sqsh") || text_ends_with (image, ".squashfs") ? SQUASHFS : SIF;
}

/* ---- the folders that a container sees ---- */

static bool is_in_folder (const char *path, const char *folder)
{
    size_t n = strlen (folder);

    return !strncmp (path, folder, n) && (path[n] == '/' || !path[n]);
}

/* Bind a folder under its own name, unless the container already sees it. */
static int bind_folder (char ***binds, const char *path, const char *const *shared,
                        struct slurmdl_error *err)
{
    struct stat st;

    if (*path != '/' || stat (path, &st) < 0)
        return 0;
    for (const char *const *f = shared; f && *f; f++)
        if (is_in_folder (path, *f))
            return 0;
    for (char **b = *binds; b && *b; b++)
        if (is_in_folder (path, *b))
            return 0;
    if (!strpbrk (path, ":, \t\n")) {
        strings_add (binds, path);
        return 0;
    }
    errno = EINVAL;
    return errorf (err,
                   "container: the folder '%s' cannot be bound: its name has "
                   "a colon, comma or space",
                   path);
}

/* The folder of the socket that `dl log` uses. */
static char *socket_folder (void)
{
    const char *path = getenv ("DL_SOCKET");
    const char *slash = path ? strrchr (path, '/') : NULL;

    return slash ? xstrndup (path, (size_t)(slash - path)) : NULL;
}

/* Append 'dir', the 'folders', and what processes of a step need to a NULL-ended list, except
 * folders that the runtime shares anyway ('shared', or NULL).  Runtimes that share folders cannot
 * create mount points in an image, so the folders of the socket, PMIx and munge are left out for
 * them.  Returns -1 with 'err'.
 */
static int container_binds (char ***binds, const char *dir, char *const *folders,
                            const char *const *shared, struct slurmdl_error *err)
{
    char *socket = socket_folder ();
    bool in_step = getenv ("SLURM_PROCID");
    const char *more[] = { "/dev/shm", socket, in_step ? getenv ("PMIX_SERVER_TMPDIR") : NULL,
                           in_step ? "/run/munge" : NULL };
    size_t n = shared && *shared ? 1 : sizeof (more) / sizeof (*more);
    int rv = bind_folder (binds, dir, shared, err);

    for (; rv == 0 && folders && *folders; folders++)
        rv = bind_folder (binds, *folders, shared, err);
    for (size_t i = 0; rv == 0 && i < n; i++)
        if (more[i])
            rv = bind_folder (binds, more[i], shared, err);
    free (socket);
    return rv;
}

/* ---- runtimes ---- */

/* The first process of a PID namespace ignores SIGTERM by default.  This shell catches the signal
 * and passes it on: kill -1 reaches all other processes of the namespace.
 */
#define PASS_SIGNALS                                                                               \
    "trap 't=1; kill -TERM -1' TERM; \"$@\" & while t=; wait $!; s=$?; "                           \
    "[ \"$t\" ]; do :; done; exit $s"

#define IN_FOLDER "cd \"$1\" && shift && exec \"$@\""

/* clang-format off */
static const struct runtime {
    const char *name, *program;
    int images;           /* mask of the kinds that it can run */
    const char *words[10]; /* arguments that come first */
    const char *gpus;     /* argument on nodes with NVIDIA GPUs */
    const char *folder;   /* option for the working folder; NULL: IN_FOLDER */
    const char *bind, *bind_end;
    const char *variable; /* option that passes a variable; NULL: it passes all */
    const char *forget;   /* option that drops a variable */
    const char *rootfs;   /* option before an image that is a folder */
    const char *prefix;   /* for a reference without "://" */
    const char *end;      /* argument after the image */
    const char *shared[5]; /* folders of the host that it shares anyway */
    bool named;           /* killing it leaves the container running; use PASS_SIGNALS */
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

/* Variables that only make sense on the host: their paths do not exist in the image. */
static const char *const of_machine[] = {
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH", NULL,
};
/* clang-format on */

static void add_two (char ***list, const char *option, const char *value)
{
    strings_add (list, option);
    strings_add (list, value);
}

/* ---- which runtime ---- */

static const struct runtime *find_container_runtime (const struct software *s, const char *image,
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
    const struct runtime *r = image ? find_container_runtime (s, image, path, err) : NULL;

    if (!image)
        no_image (s, err);
    free (image);
    return r ? r->name : NULL;
}

static void add_bind (char ***words, const struct runtime *r, const char *bind)
{
    const char *to = strchr (bind, ':');
    bool has_options = to && strchr (to + 1, ':');

    strings_add (words, r->bind);
    strings_addf (words, "%s%s%s%s", bind, to ? "" : ":", to ? "" : bind,
                  r->bind_end && !has_options ? r->bind_end : "");
}

/* ---- its variables ---- */

/* Pass variables by name, without values, because every user can read command lines. */
static void add_variables (char ***words, const struct runtime *r)
{
    char name[256];

    for (const char *const *n = of_machine; r->forget && *n; n++)
        add_two (words, r->forget, *n);
    for (char **v = environ; r->variable && *v; v++) {
        size_t n = strspn (*v, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        if (n == 0 || n >= sizeof (name) || (*v)[n] != '=')
            continue;
        snprintf (name, sizeof (name), "%.*s", (int)n, *v);
        if (!strings_contain (of_machine, name) && strcmp (name, "HOME") && strcmp (name, "_"))
            add_two (words, r->variable, name);
    }
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

static void add_options (char ***words, const struct software *s, const struct runtime *r,
                         const char *dir, char *const *binds)
{
    strings_add_all (words, (char *const *)r->words);
    if (r->gpus && has_gpus ())
        strings_add (words, r->gpus);
    if (r->folder)
        add_two (words, r->folder, dir);
    for (; binds && *binds; binds++)
        add_bind (words, r, *binds);
    for (char **b = s->binds; b && *b; b++)
        add_bind (words, r, *b);
    add_variables (words, r);
    strings_add_all (words, s->options);
}

static void add_image (char ***words, const struct runtime *r, const char *image)
{
    enum image_kind kind = image_kind_of (image);
    if (kind == FOLDER && r->rootfs)
        strings_add (words, r->rootfs);
    strings_addf (words, "%s%s",
                  kind == REFERENCE && r->prefix && !strstr (image, "://") ? r->prefix : "", image);
    if (r->end)
        strings_add (words, r->end);
}

static void add_shell (char ***words, const char *script, const char *argument)
{
    strings_add (words, "/bin/sh");
    add_two (words, "-c", script);
    strings_add (words, "sh");
    if (argument)
        strings_add (words, argument);
}

static char *container_name (void)
{
    return xasprintf ("dl-%ld-%.0f", (long)getpid (), monotonic () * 1e6);
}

/* Charliecloud mounts TMPDIR as /tmp and requires USER.  Libraries of the host must not be loaded
 * into programs of the image.
 */
static void set_runtime_variables (const struct runtime *r)
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

static char **build_command (const struct software *s, const struct runtime *r, const char *image,
                             const char *dir, char *const *binds, char *const *command, char **name)
{
    char **words = NULL;

    strings_add (&words, r->program);
    set_runtime_variables (r);
    add_options (&words, s, r, dir, binds);
    if (r->named) {
        *name = container_name ();
        add_two (&words, "--name", *name);
    }
    add_image (&words, r, image);
    if (r->named)
        add_shell (&words, PASS_SIGNALS, NULL);
    if (!r->folder)
        add_shell (&words, IN_FOLDER, dir);
    strings_add_all (&words, command);
    return words;
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
    else if ((r = find_container_runtime (s, image, getenv ("PATH"), err))
             && container_binds (&binds, dir, folders, r->shared, err) == 0)
        words = build_command (s, r, image, dir, binds, command, name);
    strings_free (binds);
    free (image);
    return words;
}

/* ---- srun with pyxis ---- */

/* The image does not contain dl, so this script does the work of `dl rank`
 * (launcher/trainer/step.c). srun passes SIGUSR2 on, which asks the program to end.  If Slurm
 * itself sent SIGTERM, the way in which the program then ends is not a result.
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
    slurm_srun_output ("--help", text, sizeof (text));
    return strstr (text, "--container-mounts");
}

/* Append OPTION=A,B,... with the 'names' of variables, or else folders as SOURCE:DESTINATION. */
static void add_list (char ***words, const char *option, char *const *const lists[2], bool names)
{
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);
    const char *comma = "=";

    fputs (option, f);
    for (int i = 0; i < 2; i++)
        for (char *const *l = lists[i]; l && *l; l++, comma = ",")
            if (names)
                fprintf (f, "%s%.*s", comma, (int)strcspn (*l, "="), *l);
            else if (strchr (*l, ':'))
                fprintf (f, "%s%s", comma, *l);
            else
                fprintf (f, "%s%s:%s", comma, *l, *l);
    xclose_memstream (f);
    if (*comma == ',')
        strings_add (words, text);
    free (text);
}

int container_srun_words (const struct software *s, const char *dir, char *const *folders,
                          char *const *variables, char ***words, struct slurmdl_error *err)
{
    static const char *const shell[] = { "/bin/sh", "-c", RANK, "sh", NULL };
    char *image = container_image (s, dir);
    char **binds = NULL;
    int rv = -1;

    if (image)
        rv = container_binds (&binds, dir, folders, NULL, err);
    else
        no_image (s, err);
    if (rv == 0) {
        strings_addf (words, "--container-image=%s", image);
        strings_addf (words, "--container-workdir=%s", dir);
        add_list (words, "--container-mounts", (char *const *const[2]){ binds, s->binds }, false);
        add_list (words, "--container-env", (char *const *const[2]){ variables, NULL }, true);
        strings_add_all (words, s->options);
        strings_add_all (words, (char *const *)shell);
    }
    free (image);
    strings_free (binds);
    return rv;
}
