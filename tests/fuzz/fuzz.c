/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs as texts, files, folders and sockets. */
#include "tests/fuzz/fuzz.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/storage/whole_file.h"

enum { DEPTH = 16 };

static void must (bool good, const char *what)
{
    if (good)
        return;
    perror (what);
    _exit (2);
}

char *fuzz_text (const uint8_t *data, size_t size)
{
    char *text = malloc (size + 1);

    must (text, "malloc");
    memcpy (text, data, size);
    text[size] = '\0';
    return text;
}

char *fuzz_line (char **text)
{
    char *line = *text;
    size_t n = strcspn (line, "\n");

    *text += n + (line[n] == '\n');
    line[n] = '\0';
    return line;
}

/* ---- the folder ---- */

static char folder[PATH_MAX / 2];
static pid_t owner;

static void remove_folder (void)
{
    if (getpid () != owner)
        return;
    fuzz_empty (folder);
    rmdir (folder);
}

const char *fuzz_folder (void)
{
    const char *tmp = getenv ("TMPDIR");

    if (*folder)
        return folder;
    snprintf (folder,
              sizeof (folder),
              "%.1000s/dl-fuzz-XXXXXX",
              tmp && *tmp ? tmp : "/tmp");
    must (mkdtemp (folder), folder);
    owner = getpid ();
    atexit (remove_folder);
    return folder;
}

const char *fuzz_path (const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf (path, PATH_MAX, "%s/%.1000s", fuzz_folder (), name);
    return path;
}

static void put (const char *path, const void *data, size_t size)
{
    FILE *f = fopen (path, "we");

    /* a path of the input's may be impossible */
    if (!f)
        return;
    must (fwrite (data, 1, size, f) == size && fclose (f) == 0, path);
}

const char *fuzz_file (const char *name, const void *data, size_t size)
{
    const char *path = fuzz_path (name);

    put (path, data, size);
    return path;
}

void fuzz_put_message (const char *path, const void *data, size_t size)
{
    message_put (path, data, size);
}

static const char *top;

static int
remove_one (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return strcmp (path, top) ? remove (path) : 0;
}

void fuzz_empty (const char *path)
{
    top = path;
    nftw (path, remove_one, DEPTH, FTW_DEPTH | FTW_PHYS);
}

/* ---- files ---- */

/* Whether the path of an input stays below its folder.  A link is never gone
 * through: links come last, and not below each other.
 */
static bool is_below (char *path, size_t start, bool makes)
{
    const char *name = path + start;
    struct stat st;

    if (!*name || *name == '/' || strstr (name, "//") || strstr (name, "..")
        || name[strlen (name) - 1] == '/')
        return false;
    for (char *c = path + start; (c = strchr (c, '/')); c++) {
        bool good;
        *c = '\0';
        if (makes)
            mkdir (path, 0777);
        good = lstat (path, &st) == 0 && S_ISDIR (st.st_mode);
        *c = '/';
        if (!good)
            return false;
    }
    return true;
}

/* Whether what a link names is in the folder as well. */
static bool leads_below (const char *name, const char *target)
{
    int depth = 0;

    if (*target == '/')
        return false;
    for (; (name = strchr (name, '/')); name++)
        depth++;
    for (const char *c = target; *c;) {
        size_t n = strcspn (c, "/");
        depth += n == 2 && !strncmp (c, "..", 2) ? -1 : n > 0;
        if (depth < 0)
            return false;
        c += n + (c[n] == '/');
    }
    return true;
}

static void put_link (char *path, size_t start, const void *data, size_t size)
{
    char target[512];

    if (size >= sizeof (target))
        return;
    memcpy (target, data, size);
    target[size] = '\0';
    if (is_below (path, start, false) && leads_below (path + start, target)
        && symlink (target, path) < 0)
        return; /* there is something */
}

/* The next line "== ...", or the end. */
static const uint8_t *next_head (const uint8_t *at, const uint8_t *end)
{
    const uint8_t *found = at;

    if (end - at >= 3 && !memcmp (at, "== ", 3))
        return at;
    while ((found = memmem (found, (size_t)(end - found), "\n== ", 4)))
        return found + 1;
    return end;
}

struct tree {
    const char *dir;
    const uint8_t *end;
    fuzz_put_f *put;
    bool links;
};

static const uint8_t *take_file (const struct tree *t, const uint8_t *at)
{
    const uint8_t *line = memchr (at, '\n', (size_t)(t->end - at));
    const uint8_t *body = line ? line + 1 : t->end;
    const uint8_t *next = next_head (body, t->end);
    size_t size = (size_t)(next - body);
    size_t start = strlen (t->dir) + 1;
    bool link = size > 3 && !memcmp (body, "-> ", 3);
    char path[PATH_MAX];
    int n;

    /* the line's end before a head is not the file's */
    size -= size && next < t->end;
    n = snprintf (path,
                  sizeof (path),
                  "%s/%.*s",
                  t->dir,
                  (int)((line ? line : t->end) - at - 3),
                  (const char *)at + 3);
    if (n >= PATH_MAX || link != t->links)
        return next;
    if (link)
        put_link (path, start, body + 3, size - 3);
    else if (is_below (path, start, true))
        t->put (path, body, size);
    return next;
}

const char *
fuzz_files (const char *name, const uint8_t *data, size_t size, fuzz_put_f *f)
{
    struct tree t = { fuzz_path (name), data + size, f ? f : put, false };

    mkdir (t.dir, 0777);
    fuzz_empty (t.dir);
    for (int i = 0; i < 2; i++, t.links = true)
        for (const uint8_t *at = next_head (data, t.end); at < t.end;)
            at = take_file (&t, at);
    return t.dir;
}

/* ---- sockets ---- */

int fuzz_socket (const uint8_t *data, size_t size)
{
    int room = 1 << 20;
    int ends[2];

    must (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
          "socketpair");
    setsockopt (ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof (room));
    while (size > 0) {
        ssize_t n = send (ends[1], data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            break;
        data += n;
        size -= (size_t)n;
    }
    shutdown (ends[1], SHUT_WR);
    close (ends[1]);
    return ends[0];
}

/* ---- what must hold ---- */

void fuzz_failed (const struct slurmdl_error *err)
{
    if (!*err->text) {
        fprintf (stderr, "a failure without a reason\n");
        abort ();
    }
}
