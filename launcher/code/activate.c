/* SPDX-License-Identifier: Apache-2.0 */
/* Load the modules and the environment in which the trials run, once. */
#include "launcher/code/code.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/software_settings.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

enum { ACTIVATE_SECONDS = 180, OUTPUT_MAX = 8 << 20 };

/* Exit statuses of the script: which key is wrong. */
enum { BAD_MODULES = 41, BAD_CONDA, BAD_VENV };

/* clang-format off */
/* The arguments are the conda environment, the virtual environment (both may be ""), and the
 * modules.  The last line on standard error explains a failure.  Standard output gets the
 * variables, each terminated by a NUL.
 *
 * modulecmd prints commands for a shell.  Read the start-up files of a login shell only if nothing
 * has set up modules.  To enter a conda environment, put its bin directory first in PATH and source
 * its activate.d: running conda itself takes seconds.
 */
static const char script[] =
    "exec 3>&1 1>&2\n"
    "conda=$1 venv=$2 root=${CONDA_EXE-$(command -v conda)}\n"
    "root=${root%/*/*}\n"
    "shift 2\n"
    "modulecmd () {\n"
    "    for cmd in \"${LMOD_CMD-}\" \"${MODULES_CMD-}\" \\\n"
    "        \"$(type -P modulecmd)\" \"${MODULESHOME-}/libexec/lmod\" \\\n"
    "        \"${MODULESHOME-}/libexec/modulecmd.tcl\"; do\n"
    "        [ -x \"$cmd\" ] && return\n"
    "    done\n"
    "    echo 'no module command is here: neither LMOD_CMD nor MODULES_CMD, "
    "nor modulecmd in PATH' >&2\n"
    "    exit 41\n"
    "}\n"
    "if [ $# -gt 0 ]; then\n"
    "    if [ -z \"${MODULEPATH-}\" ]; then\n"
    "        for f in /etc/profile.d/*lmod*.sh /etc/profile.d/*modules*.sh; do\n"
    "            [ -r \"$f\" ] && . \"$f\"\n"
    "        done\n"
    "    fi >/dev/null 2>&1\n"
    "    modulecmd\n"
    "    for m; do\n"
    "        code=$(\"$cmd\" bash load \"$m\") && eval \"$code\" || {\n"
    "            echo \"cannot load '$m'\" >&2\n"
    "            exit 41\n"
    "        }\n"
    "    done\n"
    "fi\n"
    "if [ -n \"$conda\" ]; then\n"
    "    case $conda in\n"
    "    */*) p=$conda ;;\n"
    "    base) p=${root:-${MAMBA_ROOT_PREFIX-}} ;;\n"
    "    *)\n"
    "        IFS=:\n"
    "        for p in ${CONDA_ENVS_PATH-} ${CONDA_ENVS_DIRS-} "
    "\"$HOME/.conda/envs\" \"$root/envs\" \"${MAMBA_ROOT_PREFIX-}/envs\"; do\n"
    "            p=$p/$conda\n"
    "            [ -d \"$p/conda-meta\" ] && break\n"
    "        done\n"
    "        unset IFS ;;\n"
    "    esac\n"
    "    if [ ! -d \"$p/conda-meta\" ]; then\n"
    "        echo \"there is no conda environment '$conda'\" >&2\n"
    "        exit 42\n"
    "    fi\n"
    "    p=$(cd \"$p\" && pwd) || exit 42\n"
    "    export CONDA_PREFIX=\"$p\" CONDA_DEFAULT_ENV=\"${conda##*/}\"\n"
    "    export PATH=\"$p/bin:$PATH\"\n"
    "    for f in \"$p\"/etc/conda/activate.d/*.sh; do\n"
    "        [ -r \"$f\" ] && . \"$f\"\n"
    "    done\n"
    "fi\n"
    "if [ -n \"$venv\" ]; then\n"
    "    if [ ! -x \"$venv/bin/python\" ]; then\n"
    "        echo \"there is no program '$venv/bin/python'\" >&2\n"
    "        exit 43\n"
    "    fi\n"
    "    p=$(cd \"$venv\" && pwd) || exit 43\n"
    "    unset PYTHONHOME\n"
    "    export VIRTUAL_ENV=\"$p\" PATH=\"$p/bin:$PATH\"\n"
    "fi\n"
    "exec /usr/bin/env -0 >&3\n";
/* clang-format on */

/* ---- the shell ---- */

static void end_in_time (const void *arg)
{
    (void)arg;
    alarm (ACTIVATE_SECONDS);
}

/* Run the script with bash.  Returns its exit status, or -1 if it did not exit by itself. */
static int run_script (const struct software *s, const char *dir, int io[2])
{
    const char *const bash[] = { "bash", "--posix",      "-c",          script,
                                 "dl",   s->conda ?: "", s->venv ?: "", NULL };
    char **argv = NULL;
    pid_t pid;

    strings_add_all (&argv, (char *const *)bash);
    strings_add_all (&argv, s->modules);
    pid = subprocess_spawn (&(struct spawn){
        .argv = argv, .dir = dir, .io = { -1, io[0], io[1] }, .prepare = end_in_time });
    strings_free (argv);
    return subprocess_wait (pid);
}

/* Read a whole file, and add a NUL that '*size' does not count. */
static char *file_contents (int fd, size_t *size)
{
    struct stat st;
    char *text = NULL;

    *size = 0;
    if (fstat (fd, &st) == 0 && st.st_size <= OUTPUT_MAX
        && (text = xcalloc (1, (size_t)st.st_size + 1))
        && pread (fd, text, (size_t)st.st_size, 0) == st.st_size)
        *size = (size_t)st.st_size;
    return text;
}

/* ---- the output of the script ---- */

/* Variables that every shell changes, so that the modules are not the reason. */
static bool is_shell_variable (const char *variable)
{
    static const char *const names[] = { "_=", "SHLVL=", "PWD=", "OLDPWD=", NULL };

    for (const char *const *n = names; *n; n++)
        if (!strncmp (variable, *n, strlen (*n)))
            return true;
    return false;
}

static void keep_variables (struct software *s, const char *text, size_t size)
{
    for (const char *v = text; v < text + size; v += strlen (v) + 1)
        if (strchr (v, '=') && !is_shell_variable (v))
            strings_add (&s->activated, v);
    for (char **v = environ; *v; v++)
        if (is_shell_variable (*v))
            strings_add (&s->activated, *v);
}

/* Write the last line, and after it the first one if there are several. */
static void explain_errors (char *text, char *buf, size_t size)
{
    char *first = NULL;
    char *last = NULL;

    for (char *line; (line = strsep (&text, "\n"));) {
        for (char *c = line; *c; c++)
            if (iscntrl ((unsigned char)*c))
                *c = ' ';
        line += strspn (line, " ");
        if (!*line)
            continue;
        first = first ? first : line;
        last = line;
    }
    snprintf (buf, size, "%.200s%s%.200s", last ? last : "bash failed", last != first ? ": " : "",
              last != first ? first : "");
}

static int report_bad_key (const struct software *s, int status, char *errors, struct origin *where,
                           struct slurmdl_error *err)
{
    const char *key = status == BAD_MODULES ? "modules"
                      : status == BAD_CONDA ? "conda"
                      : status == BAD_VENV  ? "venv"
                      : s->modules          ? "modules"
                      : s->conda            ? "conda"
                                            : "venv";
    char why[420];

    explain_errors (errors, why, sizeof (why));
    if (where)
        *where = *key == 'm'   ? s->origins.modules
                 : *key == 'c' ? s->origins.conda
                               : s->origins.venv;
    errno = EINVAL;
    return errorf (err, "'environment.%s': %s", key, why);
}

bool software_is_loaded (const struct software *s)
{
    return s->activated || (!s->modules && !s->conda && !s->venv);
}

int software_activate (struct software *s, const char *dir, struct origin *where,
                       struct slurmdl_error *err)
{
    int io[2] = { -1, -1 };
    char *text[2] = { NULL, NULL };
    size_t size[2] = { 0, 0 };
    int status;
    int rv = -1;

    if (software_is_loaded (s))
        return 0;
    for (int i = 0; i < 2; i++)
        if ((io[i] = memfd_create ("dl", MFD_CLOEXEC)) < 0)
            goto out;
    status = run_script (s, dir, io);
    for (int i = 0; i < 2; i++)
        text[i] = file_contents (io[i], &size[i]);
    if (!text[0] || !text[1])
        goto out;
    if (status == 0 && size[0] > 0) {
        keep_variables (s, text[0], size[0]);
        rv = 0;
    } else
        rv = report_bad_key (s, status, text[1], where, err);
out:
    if (rv < 0)
        errorf (err, "environment: %s", strerror (errno));
    for (int i = 0; i < 2; i++) {
        if (io[i] >= 0)
            close (io[i]);
        free (text[i]);
    }
    return rv;
}

/* ---- queries of the loaded environment ---- */

static const char *value_in (char *const *list, const char *name)
{
    size_t n = strlen (name);

    for (; list && *list; list++)
        if (!strncmp (*list, name, n) && (*list)[n] == '=')
            return *list + n + 1;
    return NULL;
}

const char *software_variable (const struct software *s, const char *name)
{
    return value_in (s->activated ? s->activated : environ, name);
}

char *program_path (const char *list, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (strchr (name, '/'))
        return xstrdup (name);
    for (const char *p = list ? list : "/bin:/usr/bin"; *p;) {
        size_t len = strcspn (p, ":");
        if (snprintf (path, sizeof (path), "%.*s/%s", (int)len, p, name) < (int)sizeof (path)
            && stat (path, &st) == 0 && S_ISREG (st.st_mode) && access (path, X_OK) == 0)
            return xstrdup (path);
        p += len + (p[len] == ':');
    }
    return NULL;
}
