/* SPDX-License-Identifier: Apache-2.0 */
/* The software of trials: check it, record it as JSON, and enter it. */
#include "launcher/code/code.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/config/software_settings.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"

/* ---- as JSON ---- */

/* clang-format off */
static const struct member {
    const char *name;
    size_t offset;
    bool is_list, is_of_container;
} software_members[] = {
    { "image",   offsetof (struct software, image),   false, true },
    { "runtime", offsetof (struct software, runtime), false, true },
    { "binds",   offsetof (struct software, binds),   true,  true },
    { "options", offsetof (struct software, options), true,  true },
    { "modules", offsetof (struct software, modules), true,  false },
    { "conda",   offsetof (struct software, conda),   false, false },
    { "venv",    offsetof (struct software, venv),    false, false },
    { NULL },
};
/* clang-format on */

static void put_list (json_t *o, const char *name, char *const *list)
{
    json_t *v = list ? json_array () : NULL;

    for (; list && *list; list++)
        json_array_append_new (v, json_string (*list));
    if (v)
        json_object_set_new (o, name, v);
}

static void put_members (json_t *o, const struct software *s, bool container)
{
    for (const struct member *m = software_members; m->name; m++) {
        const void *at = (const char *)s + m->offset;
        if (m->is_of_container != container)
            continue;
        if (m->is_list)
            put_list (o, m->name, *(char *const *const *)at);
        else if (*(char *const *)at)
            json_object_set_new (o, m->name, json_string (*(char *const *)at));
    }
}

char *software_text (const struct software *s, char *const *folders, bool all)
{
    json_t *o = json_object ();
    char *text;

    put_members (o, s, true);
    if (all)
        put_members (o, s, false);
    put_list (o, "folders", folders);
    text = json_dumps (o, JSON_COMPACT);
    json_decref (o);
    return text;
}

static char **list_of (const json_t *v)
{
    const json_t *item;
    char **list = NULL;
    size_t i;

    json_array_foreach (v, i, item)
        if (json_is_string (item))
            strings_add (&list, json_string_value (item));
    return list;
}

/* Read what software_text() wrote.  Returns -1 if 'text' is something else; software_free() and
 * free the folders in any case.
 */
static int software_parse (const char *text, struct software *s, char ***folders)
{
    json_t *o = json_loads (text, 0, NULL);

    *s = (struct software){ .image = NULL };
    *folders = NULL;
    if (!json_is_object (o)) {
        json_decref (o);
        return -1;
    }
    for (const struct member *m = software_members; m->name; m++) {
        void *at = (char *)s + m->offset;
        const json_t *v = json_object_get (o, m->name);
        if (m->is_list)
            *(char ***)at = list_of (v);
        else if (json_is_string (v))
            *(char **)at = xstrdup (json_string_value (v));
    }
    *folders = list_of (json_object_get (o, "folders"));
    json_decref (o);
    return 0;
}

static void software_free (struct software *s)
{
    for (const struct member *m = software_members; m->name; m++) {
        void *at = (char *)s + m->offset;
        if (m->is_list)
            strings_free (*(char ***)at);
        else
            free (*(char **)at);
    }
    strings_free (s->activated);
}

static void put_image_file (json_t *o, const char *path)
{
    struct stat st;

    if (*path != '/' || stat (path, &st) < 0)
        return;
    json_object_set_new (o, "path", json_string (path));
    if (S_ISREG (st.st_mode))
        json_object_set_new (o, "bytes", json_integer (st.st_size));
    json_object_set_new (o, "modified", json_integer (st.st_mtime));
}

static json_t *container_json (const struct software *s, const char *dir)
{
    const char *runtime = container_runtime (s, dir, software_variable (s, "PATH"), NULL);
    char *path = container_image (s, dir);
    json_t *o = json_object ();

    put_members (o, s, true);
    if (path)
        put_image_file (o, path);
    if (runtime && !s->runtime)
        json_object_set_new (o, "found", json_string (runtime));
    free (path);
    return o;
}

static void put_environment_member (json_t *o, const struct software *s)
{
    json_t *v = json_object ();

    put_members (v, s, false);
    if (json_object_size (v) > 0)
        json_object_set (o, "environment", v);
    json_decref (v);
}

void software_record (const struct software *s, const char *dir, json_t *o)
{
    if (s->image)
        json_object_set_new (o, "container", container_json (s, dir));
    put_environment_member (o, s);
}

static void print_object (const char *title, const json_t *o)
{
    const char *name;
    const json_t *v, *item;
    size_t i;

    if (!json_is_object (o))
        return;
    printf ("%s:", title);
    json_object_foreach ((json_t *)o, name, v) {
        printf (" %s", name);
        json_array_foreach (v, i, item)
            printf ("%s%s", i ? ", " : " ", json_string_value (item) ?: "?");
        if (json_is_integer (v))
            printf (" %lld", (long long)json_integer_value (v));
        else if (json_is_string (v))
            printf (" %s", json_string_value (v));
        putchar (json_object_iter_next ((json_t *)o, json_object_iter_at ((json_t *)o, name))
                     ? ';'
                     : '\n');
    }
}

void software_record_print (const json_t *record)
{
    print_object ("container", json_object_get (record, "container"));
    print_object ("environment", json_object_get (record, "environment"));
}

bool software_image_differs (const json_t *record)
{
    static const char *const names[] = { "bytes", "modified", NULL };
    const json_t *then = json_object_get (record, "container");
    const char *path = json_string_value (json_object_get (then, "path"));
    json_t *now = json_object ();
    bool differs = false;

    put_image_file (now, path ? path : "");
    for (const char *const *n = names; *n; n++)
        differs |= json_object_get (then, *n)
                   && !json_equal (json_object_get (then, *n), json_object_get (now, *n));
    json_decref (now);
    return differs;
}

void software_print (const struct software *s)
{
    json_t *o = json_object ();
    json_t *container = json_object ();

    put_members (container, s, true);
    if (s->image)
        json_object_set (o, "container", container);
    json_decref (container);
    put_environment_member (o, s);
    software_record_print (o);
    json_decref (o);
}

/* ---- checking and loading ---- */

static void check_software_image (struct experiment *e, bool local, struct problems *p)
{
    const struct software *s = e->software;
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
    struct software *s = e->software;
    struct slurmdl_error err = { "" };
    struct origin where = NO_ORIGIN;

    if (loads && software_activate (s, e->dir, &where, &err) < 0)
        problem_at (p, where, "%s", err.text);
    if (s->image)
        check_software_image (e, local, p);
}

/* With ranks on other nodes, each rank looks for the runtime on its own node. */
static int find_local_runtime (const struct experiment *e, struct slurmdl_error *err)
{
    const struct software *s = e->software;

    if (!s->image || experiment_has_ranks (e)
        || container_runtime (s, e->dir, software_variable (s, "PATH"), err))
        return 0;
    errno = EINVAL;
    return -1;
}

int software_enter (struct experiment *e, struct slurmdl_error *err)
{
    struct software *s = e->software;

    if (s->image && experiment_has_ranks (e))
        s->by_srun = container_by_srun (s, e->dir);
    return software_activate (s, e->dir, NULL, err) < 0 ? -1 : find_local_runtime (e, err);
}

/* ---- dl within ---- */

enum { NOT_RUN = 126, NO_PROGRAM = 127 };

/* Remove the container from a process of its own once this one has ended: SIGKILL ends podman, but
 * not what conmon started for it.
 */
static void remove_after (const char *program, const char *name)
{
    pid_t me = getpid ();
    int process = (int)syscall (SYS_pidfd_open, me, 0);
    struct pollfd end = { .fd = process, .events = POLLIN };
    int null;

    if (process < 0 || subprocess_fork (0) != 0) {
        close (process);
        return;
    }
    setsid ();
    if ((null = open ("/dev/null", O_RDWR)) >= 0)
        for (int i = 0; i < 3; i++)
            dup2 (null, i);
    while (poll (&end, 1, -1) < 0 && errno == EINTR)
        ;
    execlp (program, program, "rm", "--force", "--ignore", "--time=0", name, (char *)NULL);
    _exit (NO_PROGRAM);
}

static int exec_or_complain (char *const *argv)
{
    int e;

    execvp (argv[0], argv);
    e = exec_error (argv[0], errno);
    complain ("%s: cannot run: %s", argv[0], strerror (e));
    return e == ENOENT ? NO_PROGRAM : NOT_RUN;
}

static int run_contained (const struct software *s, char *const *folders, char *const *command)
{
    struct slurmdl_error err = { "" };
    char *name;
    char **argv = container_command (s, folders, command, &name, &err);
    int rv = NOT_RUN;

    if (argv) {
        if (name)
            remove_after (argv[0], name);
        rv = exec_or_complain (argv);
    } else
        complain ("%s", err.text);
    strings_free (argv);
    free (name);
    return rv;
}

int cmd_within (const struct command_line *line)
{
    const char *text = getenv ("DL_SOFTWARE");
    struct slurmdl_error err = { "" };
    struct software s;
    char **folders;
    int rv = NOT_RUN;

    if (software_parse (text ? text : "{}", &s, &folders) < 0)
        complain ("DL_SOFTWARE is not a JSON object");
    else if (software_activate (&s, ".", NULL, &err) < 0)
        complain ("%s", err.text);
    else {
        environ = s.activated ? s.activated : environ;
        rv = s.image ? run_contained (&s, folders, line->args) : exec_or_complain (line->args);
        environ = NULL;
    }
    software_free (&s);
    strings_free (folders);
    return rv;
}
