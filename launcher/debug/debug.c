/* SPDX-License-Identifier: Apache-2.0 */
/* dl debug: print the stacks, errors and warnings of a step. */
#include "launcher/debug/debug.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/debug/stacks.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/user.h"

enum { WAIT_SECONDS = 90 };

struct debug_search {
    char prefix[64];
    bool has_step;
    char found[PATH_MAX];
    struct timespec made;
};

/* "dl-debug-12" stands for all steps of job 12, not of job 123.  Check the owner because
 * others may be able to write to the parent directory.
 */
static void consider (const char *dir, const char *name, void *arg)
{
    struct debug_search *s = arg;
    char next = name[strlen (s->prefix)];
    char path[PATH_MAX];
    struct stat st;

    if (next && (next != '.' || s->has_step))
        return;
    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (lstat (path, &st) < 0 || !S_ISDIR (st.st_mode) || st.st_uid != geteuid ())
        return;
    if (*s->found
        && (st.st_mtim.tv_sec < s->made.tv_sec
            || (st.st_mtim.tv_sec == s->made.tv_sec && st.st_mtim.tv_nsec < s->made.tv_nsec)))
        return;
    s->made = st.st_mtim;
    snprintf (s->found, sizeof (s->found), "%s", path);
}

static int find_debug_folder (const char *what, char *dir, size_t size)
{
    struct debug_search s = { .found = "" };
    const char *parent = getenv ("DL_DEBUG_DIR") ?: ".";
    struct stat st;

    if (stat (what, &st) == 0 && S_ISDIR (st.st_mode)) {
        snprintf (dir, size, "%s", what);
        return EXIT_OK;
    }
    snprintf (s.prefix, sizeof (s.prefix), "dl-debug-%.48s", what);
    s.has_step = strchr (what, '.') != NULL;
    debug_each (parent, s.prefix, consider, &s);
    if (*s.found) {
        snprintf (dir, size, "%s", s.found);
        return EXIT_OK;
    }
    complain ("%s/%s: no such folder: name it, or run this in the job's working directory; the job "
              "needs --dl-debug",
              parent, s.prefix);
    return EXIT_NOT_FOUND;
}

static void print_stacks (const char *dir, long dump)
{
    struct stack *stacks;
    size_t *group;
    size_t n = debug_read (dir, dump, &stacks, &group);
    size_t end;

    for (size_t i = 0; i < n; i = end) {
        char ranks[256];
        char place[512];
        for (end = i; end < n && group[end] == group[i]; end++)
            ;
        stacks_ranks (stacks + i, end - i, ranks, sizeof (ranks));
        stack_place (&stacks[i], place, sizeof (place));
        printf ("%5zu %s %-16s %s%s%s%s\n", end - i, end - i == 1 ? "rank " : "ranks", ranks, place,
                end - i == 1 && n > 2 ? "  [" : "", end - i == 1 && n > 2 ? stacks[i].host : "",
                end - i == 1 && n > 2 ? "]" : "");
    }
    if (n == 0)
        puts ("no stacks");
    free (stacks);
    free (group);
}

static void print_dump (const char *dir, long dump)
{
    char path[PATH_MAX];
    char reason[DEBUG_LINE];
    char when[64] = "";
    struct stat st;

    debug_path (path, sizeof (path), dir, dump, "reason");
    debug_cause (dir, dump, reason, sizeof (reason));
    if (stat (path, &st) == 0)
        time_text (when, sizeof (when), (double)st.st_mtim.tv_sec);
    printf ("%s/dump-%ld, %s: %s\n", dir, dump, when, reason);
    print_stacks (dir, dump);
}

static void print_error (const char *dir, const char *name, void *arg)
{
    char path[PATH_MAX];
    char line[256];

    (void)arg;
    snprintf (path, sizeof (path), "%s/%s", dir, name);
    debug_last_line (path, "", line, sizeof (line));
    if (*line)
        printf ("rank %ld ended: %s (%s)\n", strtol (name + 6, NULL, 10), line, name);
}

static void print_warning (const char *dir, const char *name, void *arg)
{
    char path[PATH_MAX];
    char line[256];

    (void)arg;
    snprintf (path, sizeof (path), "%s/%s", dir, name);
    debug_last_line (path, "NCCL WARN", line, sizeof (line));
    if (*line)
        printf ("rank %ld: %s (%s)\n", strtol (name + 5, NULL, 10), line, name);
}

static void count_entry (const char *dir, const char *name, void *arg)
{
    (void)dir;
    (void)name;
    ++*(long *)arg;
}

static void print_rest (const char *dir)
{
    long flights = 0;

    debug_each (dir, "error.", print_error, NULL);
    debug_each (dir, "nccl.", print_warning, NULL);
    debug_each (dir, "flight_", count_entry, &flights);
    if (flights > 0)
        printf ("flight recorder of %ld ranks: torchfrtrace --prefix flight_ %s\n", flights, dir);
}

static bool always_true (void *arg)
{
    (void)arg;
    return true;
}

static void count_live (const char *dir, const char *name, void *arg)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    /* count even old files, because clocks may differ; if no watcher answers, debug_wait() times
     * out */
    if (stat (path, &st) == 0)
        ++*(long *)arg;
}

/* Request a dump if the step runs, and wait for it. */
static int request_dump (const char *dir)
{
    long watchers = 0;
    char path[PATH_MAX];
    struct stat st;
    long missing;
    long dump;

    debug_each (dir, "watch-", count_live, &watchers);
    if (watchers == 0)
        return EXIT_OK;
    if (stat (dir, &st) < 0 || !user_writes_alone (&st)) {
        complain ("%s: other users own it or can write there: showing the existing stacks without "
                  "requesting new ones",
                  dir);
        return EXIT_OK;
    }
    dump = debug_newest (dir) + 1;
    if (debug_request (dir, dump, DEBUG_REQUEST, "requested by dl debug") < 0 && errno != EEXIST) {
        complain ("%s: %s", dir, strerror (errno));
        return EXIT_IO;
    }
    missing = debug_wait (dir, dump, WAIT_SECONDS, always_true, NULL);
    if (debug_done (dir, dump) == 0) { /* the step has ended meanwhile */
        debug_path (path, sizeof (path), dir, dump, "reason");
        unlink (path);
        debug_path (path, sizeof (path), dir, dump, "");
        rmdir (path);
    } else if (missing > 0)
        complain ("%ld nodes did not answer within %d s", missing, WAIT_SECONDS);
    return EXIT_OK;
}

int cmd_debug (const struct command_line *line)
{
    const struct debug_options *opt = line->options;
    char dir[PATH_MAX];
    long newest;
    int rv = find_debug_folder (line->args[0], dir, sizeof (dir));

    if (rv == EXIT_OK && !opt->last)
        rv = request_dump (dir);
    if (rv != EXIT_OK)
        return rv;
    newest = debug_newest (dir);
    if (newest > 0)
        print_dump (dir, newest);
    else
        printf ("%s: no stacks were requested\n", dir);
    print_rest (dir);
    return EXIT_OK;
}
