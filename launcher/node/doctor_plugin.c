/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: check plugstack.conf, dl.so and its other files. */
#include "launcher/node/doctor.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/small_file.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/nearest_word.h"
#include "runtime/network/nccl.h"
#include "runtime/rank/condition.h"
#include "runtime/rank/plugin_options.h"

enum { WHERE = PATH_MAX + 32, FULL = 2 * PATH_MAX, PLUGIN_MOST = 64 << 20, ANSWER_S = 5 };

static const char *site_path (const struct site *s, const char *path, char buf[FULL])
{
    snprintf (buf, FULL, "%s%s", s->root, path);
    return buf;
}

static const char *where_line_is (const struct conf_line *l, char buf[WHERE])
{
    snprintf (buf, WHERE, "%s:%d", l->file, l->line);
    return buf;
}

/* ---- plugstack.conf; spank(8) ---- */

void doctor_plugstack (struct site *s)
{
    char path[FULL];

    if (strstr (s->conf_path, "/conf-cache/") || !strncmp (s->conf_path, "/run/slurm/conf/", 16))
        site_report (s, HINT, s->conf_path,
                     "this host is configless: make sure that plugstack.conf and the files it "
                     "includes exist here, too");
    if (access (site_path (s, s->stack_path, path), F_OK) < 0)
        site_report (s, BROKEN, s->stack_path, "%s: create it, with the line \"optional dl.so\"",
                     strerror (errno));
    else if (access (path, R_OK) < 0)
        site_report (s, BROKEN, s->stack_path, "%s: users' srun and sbatch read it too: chmod 644",
                     strerror (errno));
    else
        site_report (s, FINE, s->stack_path, "readable");
}

void doctor_plugin_line (struct site *s)
{
    char where[WHERE];

    if (!s->plugin.at) {
        site_report (s, BROKEN, s->stack_path,
                     "no line loads dl.so: add \"optional dl.so\", on login and compute nodes");
        return;
    }
    where_line_is (s->plugin.at, where);
    if (s->plugins > 1)
        site_report (s, CHANGE, where, "%d lines load dl.so: keep one", s->plugins);
    if (!*s->plugin.word)
        site_report (s, BROKEN, where, "the word before dl.so is missing: use \"optional\"");
    else if (!strcmp (s->plugin.word, "required"))
        site_report (s, CHANGE, where,
                     "\"required\": a node on which dl.so cannot be loaded fails all its jobs: use "
                     "\"optional\"");
    else if (strcmp (s->plugin.word, "optional"))
        site_report (s, BROKEN, where, "'%s' is not a keyword of plugstack.conf: use \"optional\"",
                     s->plugin.word);
    else
        site_report (s, FINE, where, "optional");
}

/* ---- the file ---- */

/* Return the expected owner of a host's files; in a copy, that is the copy's owner. */
static uid_t site_owner (const struct site *s)
{
    struct stat st;

    return *s->root && stat (s->root, &st) == 0 ? st.st_uid : 0;
}

static bool is_open (const struct site *s, const struct stat *st)
{
    bool sticky = S_ISDIR (st->st_mode) && st->st_mode & S_ISVTX;

    return (st->st_uid != site_owner (s) && st->st_uid != 0)
           || (st->st_mode & (S_IWGRP | S_IWOTH) && !sticky);
}

/* Check the file and all its parents.  'what' says what anyone who can write there could do. */
static bool only_admin_can_write (struct site *s, const char *path, const char *what)
{
    char part[PATH_MAX];
    char name[FULL];
    struct stat st;
    char *slash;

    snprintf (part, sizeof (part), "%s", path);
    do {
        const char *at = *part ? part : "/";
        if (stat (site_path (s, at, name), &st) == 0 && is_open (s, &st)) {
            site_report (
                s, CHANGE, at,
                "owner %ld, mode %o: anyone who can write there %s: chown root, chmod go-w",
                (long)st.st_uid, st.st_mode & 07777, what);
            return false;
        }
        if ((slash = strrchr (part, '/')))
            *slash = '\0';
    } while (slash);
    return true;
}

void doctor_plugin_file (struct site *s)
{
    char name[FULL];
    char where[WHERE];

    if (!s->plugin.at)
        return;
    if (access (site_path (s, s->plugin.plugin, name), R_OK) < 0) {
        site_report (s, BROKEN, where_line_is (s->plugin.at, where),
                     "%s: %s: install it, or give the full path", s->plugin.plugin,
                     strerror (errno));
        return;
    }
    if (only_admin_can_write (s, s->plugin.plugin, "becomes root on each node"))
        site_report (s, FINE, s->plugin.plugin, "only root can write there");
}

/* Return the Slurm release for which a plugin was built, or 0 if unknown.  Do not load
 * the file: that would run its code.
 */
static unsigned long built_for (const char *path)
{
    static const char mark[] = PLUGIN_RELEASE;
    size_t n;
    char *text = file_read_named (path, PLUGIN_MOST, &n, NULL);
    const char *at = text ? memmem (text, n, mark, sizeof (mark) - 1) : NULL;
    unsigned long number = at ? strtoul (at + sizeof (mark) - 1, NULL, 16) : 0;

    free (text);
    return number;
}

/* Slurm rejects a plugin whose major or minor version differs from its own. */
void doctor_plugin_release (struct site *s)
{
    char name[FULL];
    char text[64];
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long n;

    if (!s->plugin.at || access (site_path (s, s->plugin.plugin, name), R_OK) < 0)
        return;
    site_value (s, "SLURM_VERSION", text, sizeof (text), s->version);
    if ((n = built_for (name)) == 0)
        site_report (s, BROKEN, s->plugin.plugin,
                     "not the slurm-dl plugin, or damaged: rebuild and reinstall it");
    else if (sscanf (text, "%u.%u", &major, &minor) != 2
             || (n >> 16 == major && (n >> 8 & 0xff) == minor))
        site_report (s, FINE, s->plugin.plugin, "built for Slurm %lu.%02lu", n >> 16,
                     n >> 8 & 0xff);
    else
        site_report (s, BROKEN, s->plugin.plugin,
                     "built for Slurm %lu.%02lu, and Slurm %s does not load it: rebuild it",
                     n >> 16, n >> 8 & 0xff, text);
}

/* ---- its arguments; dl-spank(8) ---- */

enum { WHY = 320 };

static int is_path_argument (const char *value, char *why)
{
    snprintf (why, WHY, "not an absolute path");
    return *value == '/' ? 0 : -1;
}

static int is_any_argument (const char *value, char *why)
{
    snprintf (why, WHY, "the value is missing");
    return *value ? 0 : -1;
}

static int is_when (const char *value, char *why)
{
    return condition_check (value, why, WHY);
}

/* Check a default like the option's value. */
static int is_default (const char *key, const char *value, char *why)
{
    char name[64];
    int i = 0;

    snprintf (name, sizeof (name), "dl-%s", key);
    while (i < PLUGIN_OPTIONS && strcmp (plugin_options[i].name, name))
        i++;
    if (i == PLUGIN_OPTIONS)
        i = PLUGIN_FRAMEWORK;
    if (i == PLUGIN_NCCL && nccl_check_name (value) < 0) {
        snprintf (why, WHY, "not a valid profile name");
        return -1;
    }
    return plugin_option_check (i, value, why, WHY);
}

/* clang-format off */
static const struct {
    const char *key;
    bool prefix; /* 'key' is a prefix */
    int (*check) (const char *value, char *why); /* NULL: is_default() */
} plugstack_arguments[] = {
    { "default",     false, NULL },
    { "nccl_dir",    false, is_path_argument },
    { "dl",          false, is_path_argument },
    { "monitor_dir", false, is_path_argument },
    { "bind",        false, NULL },
    { "nccl",        false, NULL },
    { "check",       false, NULL },
    { "monitor",     false, NULL },
    { "debug",       false, NULL },
    { "options",     false, is_any_argument },
    { "when",        false, is_when },
    { "allow",       true,  is_any_argument },
    { "deny",        true,  is_any_argument },
    { "min_",        true,  is_any_argument },
    { "max_",        true,  is_any_argument },
};
/* clang-format on */
enum { ARGUMENTS = sizeof (plugstack_arguments) / sizeof (*plugstack_arguments) };

static bool is_key (int row, const char *key)
{
    const char *name = plugstack_arguments[row].key;

    return plugstack_arguments[row].prefix ? !strncmp (key, name, strlen (name))
                                           : !strcmp (key, name);
}

/* What the plugin does with an argument that it does not understand. */
static const char *effect (bool ends)
{
    return ends ? "ignored; the arguments after it, up to the next when=, apply to no step"
                : "ignored";
}

static void check_argument (struct site *s, const char *arg)
{
    const char *keys[ARGUMENTS + 1] = { 0 };
    const char *value = arg + strcspn (arg, "=");
    const char *meant;
    char where[WHERE];
    char key[64];
    char why[WHY] = "";

    where_line_is (s->plugin.at, where);
    snprintf (key, sizeof (key), "%.*s", (int)(value - arg), arg);
    for (int i = 0; i < ARGUMENTS; i++) {
        keys[i] = plugstack_arguments[i].key;
        if (!*value || !is_key (i, key))
            continue;
        if ((plugstack_arguments[i].check ? plugstack_arguments[i].check (value + 1, why)
                                          : is_default (key, value + 1, why))
            < 0)
            site_report (s, CHANGE, where, "%s: %s; %s", arg, why, effect (!strcmp (key, "when")));
        return;
    }
    meant = nearest_word (key, keys);
    site_report (s, CHANGE, where, "%s: not an argument of dl.so%s%s%s; %s", arg,
                 DID_YOU_MEAN (meant, "", "=", "; see dl-spank(8)"), effect (true));
}

static bool has_new_finding (const struct site *s, size_t before, const char *line)
{
    size_t n = strcspn (line, ":") + 1;

    for (size_t i = before; i < s->nfindings; i++)
        if (!strncmp (s->findings[i].what, line, n))
            return true;
    return false;
}

/* Report what the plugin itself printed in srun: it knows more arguments than the table. */
static void hear_plugin (struct site *s, size_t before)
{
    static const char mark[] = "dl: plugstack.conf: ";
    char where[WHERE];

    where_line_is (s->plugin.at, where);
    for (const char *l = s->said; (l = strstr (l, mark));) {
        size_t len = strcspn (l += strlen (mark), "\n");
        if (!has_new_finding (s, before, l))
            site_report (s, CHANGE, where, "%.*s", (int)len, l);
    }
}

void doctor_plugin_arguments (struct site *s)
{
    char text[4096];
    char where[WHERE];
    char *next = NULL;
    size_t before = s->nfindings;

    if (!s->plugin.at)
        return;
    snprintf (text, sizeof (text), "%s", s->plugin.arguments);
    for (char *a = strtok_r (text, " \t", &next); a; a = strtok_r (NULL, " \t", &next))
        check_argument (s, a);
    hear_plugin (s, before);
    if (s->nfindings == before)
        site_report (s, FINE, where_line_is (s->plugin.at, where), "known, and valid");
}

static const char *argument_of_plugin (const struct site *s, const char *key, char *buf,
                                       size_t size)
{
    size_t n = strlen (key);

    for (const char *at = s->plugin.at ? s->plugin.arguments : ""; *at;) {
        size_t len = strcspn (at, " \t");
        if (!strncmp (at, key, n) && at[n] == '=') {
            snprintf (buf, size, "%.*s", (int)(len - n - 1), at + n + 1);
            return buf;
        }
        at += len;
        at += strspn (at, " \t");
    }
    return NULL;
}

/* A hung file system blocks every process that accesses it, so access it from a child
 * that can be killed.
 */
static bool file_system_answers (const char *path)
{
    struct command c = { .timeout = ANSWER_S };
    char said[256];
    int status;

    command_add (&c, "test", NULL);
    command_add (&c, "-x", NULL);
    command_add (&c, path, NULL);
    status = command_run (&c, NULL, said, sizeof (said));
    command_free (&c);
    return status >= 0;
}

/* Inspect the command but never run it, because root may be running dl doctor. */
void doctor_command (struct site *s)
{
    char buf[PATH_MAX];
    char name[FULL];
    const char *path = argument_of_plugin (s, "dl", buf, sizeof (buf));

    if (!s->plugin.at)
        return;
    if (!path)
        path = BINDIR "/dl";
    if (!file_system_answers (site_path (s, path, name)))
        site_report (s, CHANGE, path,
                     "no answer within %d s: its file system hangs, and so do steps with "
                     "--dl-check, --dl-monitor or --dl-debug: install dl on a local file system, "
                     "and pass dl=PATH to dl.so",
                     ANSWER_S);
    else if (access (name, X_OK) < 0)
        site_report (s, CHANGE, path,
                     "%s: options that need more than libc do nothing: install slurm-dl there, or "
                     "pass dl=PATH to dl.so",
                     strerror (errno));
    else if (only_admin_can_write (s, path, "runs programs as each user"))
        site_report (s, FINE, path, "found");
}

/* ---- profiles ---- */

static void report_profile_line (void *arg, const char *line)
{
    struct site *s = arg;

    site_report (s, CHANGE, "", "%s", line + strlen (s->root));
}

static void read_site_profile (struct site *s, const char *path)
{
    struct nccl_profile p = { .n = 0 };

    /* EPERM: only_admin_can_write() has already reported it */
    if (nccl_read (path, &p, report_profile_line, s) < 0 && errno != EPERM)
        site_report (s, CHANGE, path + strlen (s->root),
                     "%s: make it a file of at most 16 KiB that every user can read",
                     strerror (errno));
}

void doctor_profiles (struct site *s)
{
    char buf[PATH_MAX];
    char pattern[FULL + 16];
    const char *dir = argument_of_plugin (s, "nccl_dir", buf, sizeof (buf));
    size_t before = s->nfindings;
    glob_t g = { .gl_pathc = 0 };
    bool safe = true; /* report only the first, because the folder may be the cause */

    if (!dir)
        dir = SYSCONFDIR "/slurm-dl/nccl.d";
    snprintf (pattern, sizeof (pattern), "%s%s/*.conf", s->root, dir);
    if (glob (pattern, 0, NULL, &g) != 0) {
        site_report (s, HINT, dir,
                     "no profile: --dl-nccl=auto sets as little as possible; "
                     "dl-spank(8) says where examples are");
        return;
    }
    for (size_t i = 0; i < g.gl_pathc; i++) {
        const char *path = g.gl_pathv[i] + strlen (s->root);
        safe = safe && only_admin_can_write (s, path, "sets variables of each user");
        read_site_profile (s, g.gl_pathv[i]);
    }
    if (s->nfindings == before)
        site_report (s, FINE, dir, "%zu profiles, no line refused", g.gl_pathc);
    globfree (&g);
}

/* ---- beside pyxis ---- */

/* pyxis enters the container in task_init.  If dl.so ran after it, it would search the
 * container for the site's profiles and its command.
 */
void doctor_order (struct site *s)
{
    const struct conf_line *pyxis = NULL;
    char where[WHERE];

    for (size_t i = 0; i < s->stack.n && s->plugin.at; i++) {
        const struct conf_line *l = &s->stack.list[i];
        if (strstr (l->text, "spank_pyxis.so") && !pyxis)
            pyxis = l;
        if (pyxis && l == s->plugin.at) {
            site_report (s, CHANGE, where_line_is (pyxis, where),
                         "spank_pyxis.so is before dl.so, which would then look for "
                         "its profiles inside the container: put dl.so first");
            return;
        }
    }
    if (pyxis && s->plugin.at)
        site_report (s, FINE, where_line_is (pyxis, where), "dl.so is before pyxis");
}
