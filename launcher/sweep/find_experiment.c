/* SPDX-License-Identifier: Apache-2.0 */
/* Find, open and read the experiments and files that the user names. */
#include "launcher/sweep/find_experiment.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/space.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "runtime/base/nearest_word.h"

/* The frozen file that makes a folder an experiment. */
static const char frozen_conf[] = "experiment.conf";

static bool folder_has_mark (const char *dir, const char *mark)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, mark);
    return access (path, F_OK) == 0;
}

/* An error that may be temporary counts as a match: whoever reads the file then reports it. */
static bool folder_may_have_mark (const char *dir, const char *mark)
{
    return folder_has_mark (dir, mark) || (errno != ENOENT && errno != ENOTDIR);
}

int each_folder (const char *root, const char *mark, int (*f) (const char *dir, void *arg),
                 void *arg)
{
    struct dirent **list;
    int n = scandir (root, &list, NULL, alphasort);
    char path[PATH_MAX];
    int rv = 0;

    if (n < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        snprintf (path, sizeof (path), "%s/%s", root, list[i]->d_name);
        if (rv == 0 && list[i]->d_name[0] != '.' && user_may_follow (path)
            && folder_has_mark (path, mark))
            rv = f (path, arg);
        free (list[i]);
    }
    free (list);
    return rv;
}

int each_experiment (const char *root, int (*f) (const char *dir, void *arg), void *arg)
{
    return each_folder (root, frozen_conf, f, arg);
}

struct folder_search {
    const char *mark;
    const char *name; /* NULL: any */
    char *dir;
    size_t size;
    struct timespec newest;
};

/* Whether a folder is NAME-0003. */
static bool is_numbered_name (const char *dir, const char *name)
{
    const char *base = strrchr (dir, '/');
    size_t n = strlen (name);

    base = base ? base + 1 : dir;
    return !strncmp (base, name, n) && base[n] == '-' && strlen (base + n + 1) == 4
           && strspn (base + n + 1, "0123456789") == 4;
}

static bool is_later (struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Nobody writes to the marking file again, so its time is that of the creation. */
static int keep_newest_folder (const char *dir, void *arg)
{
    struct folder_search *s = arg;
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/%s", dir, s->mark);
    if ((!s->name || is_numbered_name (dir, s->name)) && stat (path, &st) == 0
        && (!*s->dir || is_later (st.st_mtim, s->newest))) {
        s->newest = st.st_mtim;
        snprintf (s->dir, s->size, "%s", dir);
    }
    return 0;
}

int find_folder (const char *root, const char *mark, const char *name, char *dir, size_t size)
{
    struct folder_search s = { .mark = mark, .name = name, .dir = dir, .size = size };

    *dir = '\0';
    if (name && folder_may_have_mark (name, mark)) {
        snprintf (dir, size, "%s", name);
        return 0;
    }
    if (name) {
        snprintf (dir, size, "%s/%s", root, name);
        if (folder_may_have_mark (dir, mark))
            return 0;
        *dir = '\0';
    }
    if (each_folder (root, mark, keep_newest_folder, &s) < 0)
        return -1;
    errno = 0;
    return *dir ? 0 : -1;
}

int experiment_find (const struct command_line *line, const char *name, char *dir, size_t size)
{
    return find_folder (line->dir, frozen_conf, name, dir, size);
}

bool experiment_is_there (const struct command_line *line, const char *name)
{
    char dir[PATH_MAX];

    return experiment_find (line, name, dir, sizeof (dir)) == 0;
}

static bool is_flow (const struct command_line *line, const char *name)
{
    static const char *const suffixes[] = { "", "-[0-9][0-9][0-9][0-9]" };
    char pattern[PATH_MAX];
    bool found = false;
    glob_t g;

    for (int i = 0; i < 2 && !found; i++) {
        snprintf (pattern, sizeof (pattern), "%s/%s%s/flow.conf", line->dir, name, suffixes[i]);
        found = glob (pattern, GLOB_NOSORT, NULL, &g) == 0;
        globfree (&g);
    }
    return found;
}

/* Collect "NAME-0003" and "NAME". */
static int note_names (const char *dir, void *arg)
{
    const char *base = strrchr (dir, '/') + 1;
    const char *number = strrchr (base, '-');

    if (number && number > base)
        strings_add_part (arg, base, (size_t)(number - base));
    strings_add (arg, base);
    return 0;
}

static void complain_no_such (const struct command_line *line, const char *name)
{
    char **names = NULL;
    const char *meant = NULL;

    each_experiment (line->dir, note_names, &names);
    if (names)
        meant = nearest_word (name, (const char *const *)names);
    for (char **n = names; n && *n && !meant; n++)
        if (!strncmp (*n, name, strlen (name)))
            meant = *n;
    complain ("no experiment '%s' in %s (%s%s%s)", name, line->dir,
              meant ? "did you mean '" : "set the folder with --dir or DL_DIR", meant ? meant : "",
              meant ? "'?" : "");
    strings_free (names);
}

/* Whether 'name' is the folder of a run of dl elastic, which dl scale accepts. */
static bool is_elastic_job (const struct command_line *line, const char *name)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s/target", line->dir, name);
    return access (path, F_OK) == 0;
}

static void complain_not_found (const struct command_line *line, const char *name)
{
    struct stat file;

    if (errno)
        complain ("%s: %s", line->dir, strerror (errno));
    else if (!name)
        complain ("no experiment in %s (set the folder with --dir or DL_DIR)", line->dir);
    else if (stat (name, &file) == 0 && S_ISREG (file.st_mode))
        complain ("'%s' is a file: this command takes the experiment that 'dl run' created from it "
                  "('dl ls')",
                  name);
    else if (is_flow (line, name))
        complain ("'%s' is a flow, not an experiment: 'dl flow show %s'", name, name);
    else if (is_elastic_job (line, name))
        complain ("'%s' is a run of dl elastic, not an experiment: it ends with its job (scancel), "
                  "and 'dl scale N %s' changes its nodes",
                  name, name);
    else
        complain_no_such (line, name);
}

static int find_experiment (const struct command_line *line, const char *name, char *dir,
                            size_t size)
{
    if (experiment_find (line, name, dir, size) == 0)
        return 0;
    complain_not_found (line, name);
    return EXIT_NOT_FOUND;
}

/* A folder to which everybody may write, like /tmp, does not mean that a group shares it. */
void share_umask (const char *dir)
{
    struct stat st;
    mode_t mask;

    if (stat (dir, &st) < 0 || !(st.st_mode & S_IWGRP) || st.st_mode & S_IWOTH)
        return;
    mask = umask (0);
    umask (mask & ~(mode_t)S_IRWXG);
}

/* Print the first problem only: users do not edit an experiment's own copy of
 * its file.
 */
static int complain_unreadable (const struct problems *p, const struct slurmdl_error *err)
{
    size_t n = strcspn (p->text, "\n");
    int e = errno == EINVAL ? EBADMSG : errno;

    errno = e;
    if (n == 0)
        return fail (err);
    complain ("%.*s%s", (int)n, p->text,
              e == EBADMSG ? " (the experiment is damaged: this is its own copy of the file)" : "");
    return error_status (e);
}

static int complain_unfinished (const struct sweep *s)
{
    if (sweep_has_lost_log (s)) {
        complain ("%s/log: missing, although there are trials: restore this folder from a backup",
                  s->dir);
        return EXIT_DAMAGED;
    }
    complain ("%s: its creation was interrupted; 'dl rm %s' removes it", s->dir, s->word);
    return EXIT_NOT_FOUND;
}

int open_experiment (const struct command_line *line, const char *name, struct sweep **sweep)
{
    struct slurmdl_error err = { "" };
    struct problems p;
    char found[PATH_MAX];
    char dir[PATH_MAX];
    int rv = find_experiment (line, name, found, sizeof (found));

    *sweep = NULL;
    if (rv)
        return rv;
    if (!user_may_follow (found)) {
        complain ("%s: another user created this link: name the folder itself", found);
        return EXIT_NOT_FOUND;
    }
    if (!realpath (found, dir))
        return fail (&err);
    problems_open (&p);
    share_umask (dir);
    *sweep = sweep_open (dir, &p, &err);
    problems_close (&p);
    if (!*sweep)
        rv = complain_unreadable (&p, &err);
    else if ((*sweep)->state == SWEEP_NEW) {
        rv = complain_unfinished (*sweep);
        sweep_close (*sweep);
        *sweep = NULL;
    }
    free (p.text);
    return rv;
}

/* ---- whether the user wants to run it ---- */

static bool answer_is_yes (const char *answer)
{
    return !strcasecmp (answer, "y\n") || !strcasecmp (answer, "yes\n");
}

static bool ask_user (void)
{
    char answer[16];

    fprintf (stderr, "Run it? [y/N] ");
    return fgets (answer, sizeof (answer), stdin) && answer_is_yes (answer);
}

/* Only the command that started this process knows 'pin', so there is no need to ask the user. */
static int check_pin (struct sweep *s, const char *pin)
{
    trust_allow (s);
    if (!strcmp (pin, s->pin)) {
        unsetenv ("DL_PIN");
        return EXIT_OK;
    }
    complain ("%s: what its trials run as you has changed since this worker "
              "was submitted: see experiment.conf, then 'dl resume' starts others",
              s->dir);
    return EXIT_USAGE;
}

int ask_trust (struct sweep *s, bool trust)
{
    struct slurmdl_error err = { "" };
    const char *pin = getenv ("DL_PIN");
    bool can_ask = isatty (0) && isatty (2);
    char why[PATH_MAX + 300];
    int rv = pin ? 0 : trust_check (s, why, sizeof (why));

    if (rv == 0)
        return pin ? check_pin (s, pin) : EXIT_OK;
    if (rv == 2 || !trust)
        complain ("%s: %s%s", s->dir, why,
                  can_ask || trust ? "" : "; use --trust to agree (dl-run(1), SHARING)");
    if (rv == 2)
        trust_say_changes (s);
    if (!trust && (!can_ask || !ask_user ()))
        return EXIT_USAGE;
    if (trust_record (s, &err) < 0)
        complain ("%s; dl will ask again", err.text);
    return EXIT_OK;
}

int open_to_run (const struct command_line *line, bool trust, const char *name,
                 struct sweep **sweep)
{
    struct slurmdl_error err = { "" };
    int rv = open_experiment (line, name, sweep);

    if (rv != EXIT_OK)
        return rv;
    rv = ask_trust (*sweep, trust);
    /* without the folder of the workers none can start, so nothing must be published first */
    if (rv == EXIT_OK && peer_count ((*sweep)->dir, 0, &err) < 0)
        rv = fail_on (*sweep, &err);
    if (rv != EXIT_OK) {
        sweep_close (*sweep);
        *sweep = NULL;
    }
    return rv;
}

/* ---- experiment files ---- */

/* Close 'p' and print what it collected. */
static struct experiment *read_experiment_file (const char *path, const struct edit *edit,
                                                struct problems *p)
{
    struct experiment *e = experiment_read_edited (path, edit, p);
    int saved = errno;

    /* the file of a fork was accepted when the original was created */
    if (e
        && (((!edit || !edit->dir) && space_check_exponents (e, p) < 0) || warm_start (e, p) < 0)) {
        experiment_destroy (e);
        e = NULL;
        saved = EINVAL;
    }
    problems_close (p);
    fputs (p->text, stderr);
    free (p->text);
    errno = saved;
    return e;
}

int read_experiment (const char *path, const struct edit *edit, struct experiment **e)
{
    struct problems p;

    problems_open (&p);
    *e = read_experiment_file (path, edit, &p);
    if (*e)
        return EXIT_OK;
    return errno == EINVAL ? EXIT_USAGE : errno == ENOENT ? EXIT_NOT_FOUND : EXIT_IO;
}

bool refuse_experiment (const struct command_line *line, const char *path)
{
    char dir[PATH_MAX], conf[PATH_MAX];
    struct stat file;
    char *word;

    snprintf (conf, sizeof (conf), "%s.conf", path);
    if ((stat (path, &file) == 0 && !S_ISDIR (file.st_mode)) || access (conf, F_OK) == 0
        || experiment_find (line, path, dir, sizeof (dir)) < 0 || !(word = shell_word (path)))
        return false;
    complain ("%s is an experiment, not a file: 'dl continue %s' continues it ('dl resume %s' if "
              "it is paused or has no workers), 'dl fork %s' creates another one from its file",
              path, word, word, word);
    free (word);
    return true;
}

int parse_trial (const struct sweep *s, const char *text, long *n)
{
    char *end;

    *n = strtol (text, &end, 10);
    if (end != text && !*end && sweep_trial (s, *n))
        return 0;
    complain ("%s: no trial '%s' (there are %ld)", s->dir, text, s->ntrials);
    return EXIT_NOT_FOUND;
}

int fail_on (const struct sweep *s, const struct slurmdl_error *err)
{
    struct passwd *owner;
    struct stat st;
    int e = errno;

    if ((e != EACCES && e != EPERM) || stat (s->dir, &st) < 0 || st.st_uid == geteuid ()) {
        errno = e;
        return fail (err);
    }
    owner = getpwuid (st.st_uid);
    complain ("%s: the experiment belongs to %s, who alone may change it: %s", s->dir,
              owner ? owner->pw_name : "another user", err->text);
    return error_status (e);
}
