/* SPDX-License-Identifier: Apache-2.0 */
/* Pass inputs to parsers as texts, files, folders and sockets. */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>

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
    snprintf (folder, sizeof (folder), "%.1000s/dl-fuzz-XXXXXX", tmp && *tmp ? tmp : "/tmp");
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

void fuzz_put (const char *path, const void *data, size_t size)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    /* the input may contain a path that cannot exist */
    if (fd < 0)
        return;
    must (write (fd, data, size) == (ssize_t)size && close (fd) == 0, path);
}

const char *fuzz_file (const char *name, const void *data, size_t size)
{
    const char *path = fuzz_path (name);

    fuzz_put (path, data, size);
    return path;
}

void fuzz_put_message (const char *path, const void *data, size_t size)
{
    message_put (path, data, size);
}

static const char *top;

static int remove_one (const char *path, const struct stat *st, int type, struct FTW *ftw)
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

struct entry {
    char *name;
    const char *body;
    size_t size;
    bool link;
};

/* The contents of a folder: sorted, without duplicate names, and with nothing below a file. */
struct tree {
    char *text;
    struct entry *list;
    size_t n;
};

/* Compare like strcmp(), but sort "a/..." directly after "a". */
static int rank_of (char c)
{
    return c == '/' ? 1 : c ? (unsigned char)c + 1 : 0;
}

static int by_name (const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t i = 0;

    while (x->name[i] && x->name[i] == y->name[i])
        i++;
    return rank_of (x->name[i]) - rank_of (y->name[i]);
}

/* Sort duplicates by position in the text, so that later entries come last. */
static int by_name_and_place (const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = by_name (a, b);

    return order ? order : (y->body > x->body) - (y->body < x->body);
}

/* Return whether every component of a path is a name, not empty, "." or "..". */
static bool is_path (const char *c)
{
    for (;; c++) {
        size_t n = strcspn (c, "/");
        if (n == 0 || !strncmp (c, ".", n) || !strncmp (c, "..", n))
            return false;
        if (!*(c += n))
            return true;
    }
}

/* Return whether the target of a link stays in the folder.  ".." may only come first. */
static bool leads_below (const char *name, const char *target)
{
    while ((name = strchr (name, '/')) && !strncmp (target, "../", 3)) {
        name++;
        target += 3;
    }
    return is_path (target) || !*target;
}

static bool is_kept (const struct entry *e, const struct entry *last)
{
    size_t n = last ? strlen (last->name) : 0;

    return is_path (e->name) && (!e->link || leads_below (e->name, e->body))
           && !(last && !strncmp (last->name, e->name, n) && (!e->name[n] || e->name[n] == '/'));
}

/* Find the next line "== ...", or the end. */
static char *next_head (char *at, const char *end)
{
    char *found = at;

    if (end - at >= 3 && !memcmp (at, "== ", 3))
        return at;
    while ((found = memmem (found, (size_t)(end - found), "\n== ", 4)))
        return found + 1;
    return (char *)end;
}

/* Cut one entry out of the text, ending its name and its link target with '\0'. */
static char *cut_entry (char *at, char *end, struct entry *e)
{
    char *line = memchr (at, '\n', (size_t)(end - at));
    char *body = line ? line + 1 : end;
    char *next = next_head (body, end);

    /* the newline before the next head does not belong to the file */
    *e = (struct entry){ at + 3, body, (size_t)(next - body), false };
    e->size -= e->size && next < end;
    if (line)
        *line = '\0';
    if ((e->link = e->size > 3 && !memcmp (body, "-> ", 3))) {
        body[e->size] = '\0';
        e->body += 3;
        e->size -= 3;
    }
    return next;
}

static struct tree read_tree (const uint8_t *data, size_t size)
{
    struct tree t = { fuzz_text (data, size), NULL, 0 };
    char *end = t.text + size;
    size_t kept = 0;

    t.list = calloc (size / 3 + 1, sizeof (*t.list));
    must (t.list, "calloc");
    for (char *at = next_head (t.text, end); at < end;)
        at = cut_entry (at, end, &t.list[t.n++]);
    qsort (t.list, t.n, sizeof (*t.list), by_name_and_place);
    for (size_t i = 0; i < t.n; i++)
        if (is_kept (&t.list[i], kept ? &t.list[kept - 1] : NULL))
            t.list[kept++] = t.list[i];
    t.n = kept;
    return t;
}

static void add_entry (const char *dir, const struct entry *e, fuzz_put_f *write_file)
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/%s", dir, e->name) >= PATH_MAX)
        return;
    for (char *c = path + strlen (dir) + 1; (c = strchr (c, '/')); c++) {
        *c = '\0';
        mkdir (path, 0777);
        *c = '/';
    }
    if (!e->link)
        write_file (path, e->body, e->size);
    else if (symlink (e->body, path) < 0)
        return; /* too long */
}

static void remove_entry (const char *dir, const struct entry *e)
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/%s", dir, e->name) >= PATH_MAX)
        return;
    unlink (path);
    for (char *c; (c = strrchr (path + strlen (dir) + 1, '/'));) {
        *c = '\0';
        if (rmdir (path) < 0)
            return;
    }
}

static bool same (const struct entry *a, const struct entry *b)
{
    return a->link == b->link && a->size == b->size && !memcmp (a->body, b->body, a->size);
}

/* Remove or write only the files that differ from the last input, because files take most of the
 * time.
 */
static void change_tree (const char *dir, const struct tree *from, const struct tree *to,
                         fuzz_put_f *write_file)
{
    size_t i = 0, j = 0;

    while (i < from->n || j < to->n) {
        int order = i == from->n ? 1 : j == to->n ? -1 : by_name (&from->list[i], &to->list[j]);
        bool stays = order == 0 && same (&from->list[i], &to->list[j]);
        if (order <= 0 && !stays && !write_file)
            remove_entry (dir, &from->list[i]);
        if (order >= 0 && !stays && write_file)
            add_entry (dir, &to->list[j], write_file);
        i += order <= 0;
        j += order >= 0;
    }
}

static struct tree now;

void fuzz_forget (const char *dir)
{
    fuzz_empty (dir);
    now.n = 0;
}

const char *fuzz_files (const char *name, const uint8_t *data, size_t size, fuzz_put_f *f)
{
    struct tree next = read_tree (data, size);
    const char *dir = fuzz_path (name);

    mkdir (dir, 0777);
    change_tree (dir, &now, &next, NULL);
    change_tree (dir, &now, &next, f ? f : fuzz_put);
    free (now.text);
    free (now.list);
    now = next;
    return dir;
}

/* ---- sockets ---- */

int fuzz_socket (const uint8_t *data, size_t size)
{
    static int other = -1; /* kept open, so that the parser can send answers */
    int room = 1 << 20;
    int ends[2];

    if (other >= 0)
        close (other);
    must (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    setsockopt (ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof (room));
    while (size > 0) {
        ssize_t n = send (ends[1], data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            break;
        data += n;
        size -= (size_t)n;
    }
    shutdown (ends[1], SHUT_WR);
    other = ends[1];
    return ends[0];
}

/* ---- rejected inputs ---- */

bool fuzz_refused;

void fuzz_failed (const struct slurmdl_error *err)
{
    fuzz_refused = true;
    if (!*err->text) {
        fprintf (stderr, "a failure without a reason\n");
        abort ();
    }
}
