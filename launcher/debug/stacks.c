/* SPDX-License-Identifier: Apache-2.0 */
/* Parse the stacks of all ranks, and group equal ones. */
#include "launcher/debug/stacks.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"

enum { LINE = 1024, PLACES_SHOWN = 4 };

enum section { NONE, PYTHON, NATIVE, KERNEL };

/* State while parsing the sections of a process.  A more detailed section replaces a less detailed
 * one.
 */
struct reader {
    struct stack *stacks;
    size_t n, max;
    long rank;
    char host[64];
    bool wanted; /* the lines belong to a process in 'stacks' */
    enum section section;
    enum section found; /* section that the frames came from */
    bool first;         /* no frame of this thread yet */
    bool user;          /* found a frame outside libraries */
};

/* ---- frames ---- */

/* Paths of libraries, not of the user's code. */
static const char *const library_paths[] = {
    "/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ", "/sysdeps/",
    "/nptl/",          "/build/glibc",    "./",           "../",      "/usr/lib/",
    "/usr/src/",       "/lib/",           "/lib64/",
};

static bool is_library (const struct stack_frame *f)
{
    if (!*f->file)
        return true;
    for (size_t i = 0; i < sizeof (library_paths) / sizeof (*library_paths); i++)
        if (strstr (f->file, library_paths[i]))
            return true;
    return false;
}

static void add_frame (struct reader *r, const struct stack_frame *f)
{
    struct stack *s = &r->stacks[r->n - 1];

    if (r->first)
        s->top = *f;
    r->first = false;
    if (!r->user && !is_library (f)) {
        s->user = *f;
        r->user = true;
    }
}

static void begin_thread (struct reader *r)
{
    struct stack *s = &r->stacks[r->n - 1];

    r->first = true;
    r->user = false;
    memset (&s->top, 0, sizeof (s->top));
    memset (&s->user, 0, sizeof (s->user));
}

/* Both formats print the main thread last. */
static void read_python_frame (struct reader *r, const char *line)
{
    struct stack_frame f = { "" };
    const char *end;

    if (!strncmp (line, "Thread 0x", 9) || !strncmp (line, "Current thread ", 15)) {
        begin_thread (r);
        return;
    }
    if (strncmp (line, "  File \"", 8) || !(end = strstr (line, "\", line ")))
        return;
    line += 8;
    snprintf (f.file, sizeof (f.file), "%.*s", (int)(end - line), line);
    f.line = strtol (end + 8, (char **)&end, 10);
    if (!strncmp (end, " in ", 4))
        snprintf (f.function, sizeof (f.function), "%s", end + 4);
    add_frame (r, &f);
}

/* Skip functions that every waiting thread is in: they do not show what it waits for. */
static bool is_waiting (const char *function)
{
    static const char *const names[] = {
        "??",
        "__futex_abstimed_wait",
        "futex_wait",
        "__syscall",
        "___pthread_cond_wait",
        "__pthread_cond_wait",
        "pthread_",
        "__GI_",
        "clock_nanosleep",
        "__libc_",
        "syscall",
        "__internal_syscall",
        "lll_mutex",
        "__lll_lock",
        "futex_abstimed_wait",
    };

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (!strncmp (function, names[i], strlen (names[i])))
            return true;
    return false;
}

static void cut_text (char *to, size_t size, const char *from, const char *stop)
{
    snprintf (to, size, "%.*s", (int)strcspn (from, stop), from);
}

/* Parse gdb's "FILE:LINE" after " at ". */
static void read_origin (const char *line, struct stack_frame *f)
{
    const char *at = NULL;
    char *colon;

    for (const char *p = strstr (line, ") at "); p; p = strstr (p + 1, ") at "))
        at = p;
    if (!at)
        return;
    cut_text (f->file, sizeof (f->file), at + 5, " \n");
    if ((colon = strrchr (f->file, ':')) && isdigit ((unsigned char)colon[1])) {
        f->line = strtol (colon + 1, NULL, 10);
        *colon = '\0';
    }
}

/* Parse a line of gdb, "#1  0x00007f in main (argc=1) at x.c:3" or "#0  spin () at x.c:2", or of
 * eu-stack, "#1  0x00007f  main".
 */
static void read_native (struct reader *r, const char *line)
{
    struct stack_frame f = { "" };

    if (!strncmp (line, "Thread ", 7) || !strncmp (line, "TID ", 4)) {
        if (!strncmp (line, "TID ", 4) && r->found == NATIVE
            && !r->first) /* eu-stack prints the main thread first */
            r->section = NONE;
        else
            begin_thread (r);
        return;
    }
    if (*line != '#' || !isdigit ((unsigned char)line[1]))
        return;
    line += strcspn (line, " ");
    line += strspn (line, " ");
    if (!strncmp (line, "0x", 2)) {
        line += strcspn (line, " ");
        line += strspn (line, " ");
        if (!strncmp (line, "in ", 3))
            line += 3;
    }
    cut_text (f.function, sizeof (f.function), line, " (\n");
    read_origin (line, &f);
    if (r->first && is_waiting (f.function))
        return;
    add_frame (r, &f);
}

/* The main thread comes first. */
static void read_kernel (struct reader *r, const char *line)
{
    struct stack_frame f = { "" };
    char where[64] = "";

    if (sscanf (line, "%*d %*s %*s %63s", where) != 1)
        return;
    if (!strcmp (where, "0") || !strcmp (where, "-"))
        snprintf (f.function, sizeof (f.function), "its own code");
    else
        snprintf (f.function, sizeof (f.function), "the kernel's %s", where);
    begin_thread (r);
    add_frame (r, &f);
    r->section = NONE;
}

/* ---- sections ---- */

static void begin_process (struct reader *r, const char *line)
{
    struct stack s = { .rank = r->rank };
    char kind[16] = "";

    r->wanted = false;
    r->section = r->found = NONE;
    if (sscanf (line, "%ld %15s %c %15s", &s.pid, s.name, &s.state, kind) < 3
        || !strcmp (kind, "helper") || r->n == r->max)
        return;
    memcpy (s.host, r->host, sizeof (s.host));
    r->stacks[r->n++] = s;
    r->wanted = true;
}

static void begin_section (struct reader *r, enum section section)
{
    r->section = NONE;
    if (!r->wanted || r->found == PYTHON || (section == KERNEL && r->found == NATIVE && !r->first))
        return;
    r->section = r->found = section;
    begin_thread (r);
}

static void read_section_mark (struct reader *r, const char *mark)
{
    if (!strncmp (mark, "rank ", 5)) {
        *r->host = '\0';
        r->rank = -1;
        r->wanted = false;
        sscanf (mark, "rank %ld on %63s", &r->rank, r->host);
        if (r->rank > INT_MAX || r->rank < 0)
            r->rank = -1;
    } else if (!strncmp (mark, "process ", 8))
        begin_process (r, mark + 8);
    else if (!strcmp (mark, "python"))
        begin_section (r, PYTHON);
    else if (!strcmp (mark, "native"))
        begin_section (r, NATIVE);
    else if (!strcmp (mark, "kernel"))
        begin_section (r, KERNEL);
}

static void read_stack_line (struct reader *r, const char *line)
{
    if (!strncmp (line, "== ", 3))
        read_section_mark (r, line + 3);
    else if (r->section == PYTHON)
        read_python_frame (r, line);
    else if (r->section == NATIVE)
        read_native (r, line);
    else if (r->section == KERNEL)
        read_kernel (r, line);
}

size_t stacks_parse (const char *text, struct stack *stacks, size_t n, size_t max)
{
    struct reader r = { .stacks = stacks, .n = n, .max = max, .rank = -1 };
    char line[LINE];

    while (*text) {
        size_t len = strcspn (text, "\n");
        snprintf (line, sizeof (line), "%.*s", (int)len, text);
        read_stack_line (&r, line);
        text += len + (text[len] == '\n');
    }
    return r.n;
}

/* ---- groups ---- */

static int frame_compare (const struct stack_frame *a, const struct stack_frame *b)
{
    int rv = strcmp (a->function, b->function);

    if (rv == 0)
        rv = strcmp (a->file, b->file);
    return rv ? rv : (a->line > b->line) - (a->line < b->line);
}

/* A stopped rank is in a different place, even if its stack is the same. */
static int place_compare (const struct stack *a, const struct stack *b)
{
    int rv = (strchr ("TtZX", a->state) != NULL) - (strchr ("TtZX", b->state) != NULL);

    if (rv == 0)
        rv = frame_compare (&a->top, &b->top);
    return rv ? rv : frame_compare (&a->user, &b->user);
}

struct grouped {
    struct stack stack;
    size_t members;
    long first; /* lowest rank of the group */
};

static int by_group (const void *pa, const void *pb)
{
    const struct grouped *a = pa, *b = pb;
    int place = place_compare (&a->stack, &b->stack);

    if (a->members != b->members)
        return a->members > b->members ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (place != 0)
        return place;
    if (a->stack.rank != b->stack.rank)
        return a->stack.rank < b->stack.rank ? -1 : 1;
    return (a->stack.pid > b->stack.pid) - (a->stack.pid < b->stack.pid);
}

static void count_members (struct grouped *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        all[i].first = all[i].stack.rank;
        for (size_t k = 0; k < n; k++)
            if (place_compare (&all[i].stack, &all[k].stack) == 0) {
                all[i].members++;
                if (all[k].stack.rank < all[i].first)
                    all[i].first = all[k].stack.rank;
            }
    }
}

size_t stacks_group (struct stack *stacks, size_t n, size_t *group)
{
    struct grouped *all = xcalloc (n, sizeof (*all));
    size_t places = 0;

    for (size_t i = 0; i < n; i++)
        all[i].stack = stacks[i];
    count_members (all, n);
    qsort (all, n, sizeof (*all), by_group);
    for (size_t i = 0; i < n; i++) {
        stacks[i] = all[i].stack;
        places += i == 0 || place_compare (&stacks[i - 1], &stacks[i]) != 0;
        group[i] = places - 1;
    }
    free (all);
    return places;
}

/* ---- words ---- */

static void append_text (char *buf, size_t size, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static void append_text (char *buf, size_t size, const char *fmt, ...)
{
    size_t used = strlen (buf);
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (buf + used, size - used, fmt, ap);
    va_end (ap);
}

static void append_frame (char *buf, size_t size, const struct stack_frame *f)
{
    const char *slash = strrchr (f->file, '/');
    const char *file = slash ? slash + 1 : f->file;

    append_text (buf, size, "%s", *f->function ? f->function : "?");
    if (*f->file && f->line)
        append_text (buf, size, " (%s:%ld)", file, f->line);
    else if (*f->file)
        append_text (buf, size, " (%s)", file);
}

static const char *process_state_text (char state)
{
    switch (state) {
    case 'T':
        return "stopped (SIGSTOP)";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "ended but not collected (zombie)";
    case 'D':
        return "waiting for a disk or file system (state D)";
    default:
        return "";
    }
}

char *stack_place (const struct stack *s, char *buf, size_t size)
{
    snprintf (buf, size, "%s", process_state_text (s->state));
    if (!*s->top.function && !*s->user.function) {
        if (!*buf)
            append_text (buf, size, "%s: no stack", s->name);
        return buf;
    }
    if (*buf)
        append_text (buf, size, " in ");
    append_frame (buf, size, *s->top.function ? &s->top : &s->user);
    if (*s->user.function && *s->top.function && frame_compare (&s->top, &s->user) != 0) {
        append_text (buf, size, " from ");
        append_frame (buf, size, &s->user);
    }
    return buf;
}

char *stacks_ranks (const struct stack *stacks, size_t n, char *buf, size_t size)
{
    *buf = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t k = i;
        while (k + 1 < n && stacks[k + 1].rank <= stacks[k].rank + 1)
            k++;
        append_text (buf, size, "%s%ld", i ? "," : "", stacks[i].rank);
        if (stacks[k].rank != stacks[i].rank)
            append_text (buf, size, "-%ld", stacks[k].rank);
        i = k;
    }
    return buf;
}

char *stacks_line (const struct stack *stacks, const size_t *group, size_t n, char *buf,
                   size_t size)
{
    char ranks[128];
    char place[512];
    const char *in;
    size_t shown = 0;
    size_t end;

    *buf = '\0';
    for (size_t i = 0; i < n && shown < PLACES_SHOWN; i = end, shown++) {
        for (end = i; end < n && group[end] == group[i]; end++)
            ;
        stacks_ranks (stacks + i, end - i, ranks, sizeof (ranks));
        stack_place (&stacks[i], place, sizeof (place));
        in = *process_state_text (stacks[i].state) ? "" : "in ";
        if (end - i == 1)
            append_text (buf, size, "%srank %s is ", i ? "; " : "", ranks);
        else
            append_text (buf, size, "%s%zu ranks (%s) are ", i ? "; " : "", end - i, ranks);
        append_text (buf, size, "%s%s", in, place);
    }
    return buf;
}
