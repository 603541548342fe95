/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-debug: set a task's variables for debugging, and start a watcher. */
#include "spank/hooks.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spank/context.h"
#include "spank/helper.h"

enum { TEXT = 4096 };

struct debug {
    spank_t sp;
    struct hang_options options;
    char folder[PATH_MAX];
    struct variables vars;
    struct given given;
};

static int make_debug_folder (struct debug *d)
{
    char parent[PATH_MAX - 64] = "";
    char cwd[PATH_MAX - 64];
    const char *job;
    char text[32];
    uint32_t step = 0;
    struct stat st;

    variable_text (d->sp, "DL_DEBUG_DIR", parent, sizeof (parent));
    if (!*parent && !option_is_given (PLUGIN_DEBUG) && option_folder (parent, sizeof (parent)) < 0)
        return -1;
    if (*parent != '/' && !getcwd (cwd, sizeof (cwd)))
        return -1;
    spank_get_item (d->sp, S_JOB_STEPID, &step);
    job = variable_text (d->sp, "SLURM_JOB_ID", text, sizeof (text)) == 0 ? text : "0";
    if (*parent == '/')
        snprintf (d->folder, PATH_MAX, "%s/dl-debug-%s.%u", parent, job, step);
    else
        snprintf (d->folder, PATH_MAX, "%s%s%s/dl-debug-%s.%u", cwd, *parent ? "/" : "", parent,
                  job, step);
    /* NCCL and PyTorch follow symbolic links, so nobody else may create any here */
    if (mkdir (d->folder, 0755) == 0)
        return 0;
    if (errno != EEXIST)
        return -1;
    if (lstat (d->folder, &st) < 0)
        return -1;
    errno = EPERM;
    return S_ISDIR (st.st_mode) && st.st_uid == geteuid () && !(st.st_mode & (S_IWGRP | S_IWOTH))
               ? 0
               : -1;
}

/* PyTorch fails if it cannot create its pipe. */
static bool can_have_pipes (const struct debug *d, long rank)
{
    char path[PATH_MAX + 32];
    bool can;

    snprintf (path, sizeof (path), "%s/pipe_%ld.test", d->folder, rank);
    can = mkfifo (path, 0600) == 0;
    unlink (path);
    return can;
}

/* Do not take variables from a --dl-nccl profile or an outer step for the user's own. */
static void begin_debug (struct debug *d)
{
    struct given *g = &d->given;
    char nccl[sizeof (g->stale) / 2];

    d->vars = variables_of (d->sp);
    given_begin (g, &d->vars, "DL_DEBUG_SET");
    if (strlen (g->stale) >= sizeof (g->stale) / 2)
        *g->stale = '\0';
    variable_text (d->sp, "DL_NCCL_SET", nccl, sizeof (nccl));
    strcat (strcat (g->stale, ","), nccl);
}

static void set_path (struct debug *d, const char *name, const char *file)
{
    char path[PATH_MAX + 64];

    snprintf (path, sizeof (path), "%s/%s", d->folder, file);
    given_set (&d->given, name, path);
}

static void set_variables (struct debug *d, long rank)
{
    /* clang-format off */
    static const struct { const char *name, *value; } rows[] = {
        { "NCCL_DEBUG",                   "INFO" },
        { "NCCL_DEBUG_TIMESTAMP_LEVELS",  "WARN,INFO" },
        { "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000" },
        { "TORCH_FR_BUFFER_SIZE",         "2000" }, /* its name since PyTorch 2.9 */
        { "TORCH_NCCL_DUMP_ON_TIMEOUT",   "1" },
        { "TORCH_SHOW_CPP_STACKTRACES",   "1" },
        { "PYTHONFAULTHANDLER",           "1" },
    };
    /* clang-format on */
    char file[64];

    for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++)
        given_set (&d->given, rows[i].name, rows[i].value);
    snprintf (file, sizeof (file), "nccl.%ld.%%h.%%p.log", rank);
    set_path (d, "NCCL_DEBUG_FILE", file);
    set_path (d, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "flight_");
    set_path (d, "TORCH_FR_DUMP_TEMP_FILE", "flight_");
    if (can_have_pipes (d, rank)) {
        set_path (d, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "pipe_");
        set_path (d, "TORCH_FR_DEBUG_INFO_PIPE_FILE", "pipe_");
    }
    given_end (&d->given, "DL_DEBUG_SET");
    spank_setenv (d->sp, "DL_DEBUG_PATH", d->folder, 1);
}

/* Put our folder first in PYTHONPATH.  An empty component would mean the working
 * directory.
 */
static void set_python (struct debug *d)
{
    char ours[PATH_MAX];
    char theirs[TEXT * 4];
    char path[sizeof (ours) + sizeof (theirs) + 1];
    char file[PATH_MAX + 32];
    size_t n;

    if (variable_text (d->sp, "DL_DEBUG_PYTHON", ours, sizeof (ours)) < 0)
        snprintf (ours, sizeof (ours), "%s", DEBUGDIR);
    snprintf (file, sizeof (file), "%s/sitecustomize.py", ours);
    if (access (file, R_OK) < 0)
        return;
    if (spank_getenv (d->sp, "PYTHONPATH", theirs, sizeof (theirs)) == ESPANK_NOSPACE)
        return;
    variable_text (d->sp, "PYTHONPATH", theirs, sizeof (theirs));
    n = strlen (ours);
    if (!strncmp (theirs, ours, n) && (theirs[n] == ':' || !theirs[n]))
        return;
    snprintf (path, sizeof (path), "%s%s%s", ours, *theirs ? ":" : "", theirs);
    spank_setenv (d->sp, "PYTHONPATH", path, 1);
}

static void start_watcher (const struct debug *d)
{
    char seconds[32];
    char pid[32];
    const char *args[] = { "watch-ranks", d->folder, seconds, pid, d->options.kill ? "kill" : NULL,
                           NULL };

    snprintf (seconds, sizeof (seconds), "%ld", d->options.seconds);
    snprintf (pid, sizeof (pid), "%d", (int)getpid ());
    if (helper_detach (d->sp, args, d->folder) < 0)
        slurm_error ("dl: --dl-debug: hangs are not detected: %.200s: %s", option_command (),
                     helper_why (errno));
}

static void set_debug_variables (struct debug *d)
{
    long rank = variable_number (d->sp, "SLURM_PROCID");
    long local = variable_number (d->sp, "SLURM_LOCALID");

    if (make_debug_folder (d) < 0) {
        if (local == 0 && option_is_given (PLUGIN_DEBUG))
            slurm_error ("dl: --dl-debug: nothing is recorded: %.300s: %s; choose "
                         "another folder with DL_DEBUG_DIR",
                         d->folder, strerror (errno));
        return;
    }
    begin_debug (d);
    set_variables (d, rank);
    set_python (d);
    if (local == 0)
        start_watcher (d);
}

void debug_task (spank_t sp)
{
    struct debug *d = calloc (1, sizeof (*d));

    if (!d)
        return;
    d->sp = sp;
    if (hang_options_parse (option_value (PLUGIN_DEBUG), &d->options) == 0)
        set_debug_variables (d);
    free (d);
}
