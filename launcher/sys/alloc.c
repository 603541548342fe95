/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that does not fail: if memory runs out, the program ends. */
#include "launcher/sys/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/messages.h"
#include "runtime/base/array.h"

/* Use write(), because stdio may have to allocate a buffer. */
void out_of_memory (void)
{
    static const char line[] = "dl: out of memory\n";

    if (write (STDERR_FILENO, line, sizeof (line) - 1) < 0)
        _exit (EXIT_IO);
    exit (EXIT_IO);
}

static void *need_memory (void *p)
{
    if (!p)
        out_of_memory ();
    return p;
}

/* malloc(0) may return NULL without having failed, so allocate at least one byte. */
void *xmalloc (size_t size)
{
    return need_memory (malloc (size ?: 1));
}

void *xcalloc (size_t n, size_t size)
{
    return need_memory (n && size ? calloc (n, size) : calloc (1, 1));
}

void *xrealloc (void *p, size_t size)
{
    return need_memory (realloc (p, size ?: 1));
}

void *xreallocarray (void *p, size_t n, size_t size)
{
    return need_memory (n && size ? reallocarray (p, n, size) : realloc (p, 1));
}

void *xmemdup (const void *p, size_t size)
{
    return memcpy (xmalloc (size), p, size);
}

char *xstrdup (const char *text)
{
    return text ? need_memory (strdup (text)) : NULL;
}

char *xstrndup (const char *text, size_t max)
{
    return need_memory (strndup (text, max));
}

char *xvasprintf (const char *format, va_list ap)
{
    char *text;

    return need_memory (vasprintf (&text, format, ap) < 0 ? NULL : text);
}

char *xasprintf (const char *format, ...)
{
    char *text;
    va_list ap;

    va_start (ap, format);
    text = xvasprintf (format, ap);
    va_end (ap);
    return text;
}

void *xgrow (void *array, size_t n, size_t size)
{
    return need_memory (array_grow (array, n, size));
}

/* Do not use open_memstream(): if memory runs out, glibc's stream drops text without an error. */
struct memory_stream {
    char **text;
    size_t *size;
    size_t capacity;
};

static ssize_t memory_stream_write (void *cookie, const char *data, size_t len)
{
    struct memory_stream *m = cookie;

    if (array_reserve (m->text, &m->capacity, *m->size, len + 1, 1) < 0)
        return 0; /* sets the stream's error */
    memcpy (*m->text + *m->size, data, len);
    *m->size += len;
    (*m->text)[*m->size] = '\0';
    return (ssize_t)len;
}

/* For ftell() only. */
static int memory_stream_seek (void *cookie, off64_t *offset, int whence)
{
    const struct memory_stream *m = cookie;

    if (whence != SEEK_CUR || *offset != 0)
        return -1;
    *offset = (off64_t)*m->size;
    return 0;
}

static int memory_stream_close (void *cookie)
{
    free (cookie);
    return 0;
}

FILE *xopen_memstream (char **text, size_t *size)
{
    const cookie_io_functions_t callbacks = {
        .write = memory_stream_write,
        .seek = memory_stream_seek,
        .close = memory_stream_close,
    };
    struct memory_stream *m = xmalloc (sizeof (*m));

    *m = (struct memory_stream){ .text = text, .size = size, .capacity = 16 };
    *text = xcalloc (1, m->capacity);
    *size = 0;
    return need_memory (fopencookie (m, "w", callbacks));
}

void xclose_memstream (FILE *stream)
{
    int failed = fflush (stream) != 0 || ferror (stream);

    if (fclose (stream) != 0 || failed)
        out_of_memory ();
}
