/* SPDX-License-Identifier: Apache-2.0 */
/* Send and receive JSON objects, as messages on a socket or lines on a pipe. */
#include "launcher/node/checks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"

void gather_line_free (struct gather_line *line)
{
    free (line->text);
    *line = (struct gather_line){ 0 };
}

static int grow_line (struct gather_line *line)
{
    size_t capacity = line->capacity ? 2 * line->capacity : 4096;

    if (line->used < line->capacity)
        return 0;
    errno = EMSGSIZE;
    if (capacity > GATHER_LINE)
        return -1;
    line->text = xrealloc (line->text, capacity);
    line->capacity = capacity;
    return 0;
}

/* Remove the first line from the buffer and parse it. */
static json_t *take_first_line (struct gather_line *line)
{
    char *end = line->used ? memchr (line->text, '\n', line->used) : NULL;
    json_t *object;
    size_t n;

    if (!end) {
        errno = EAGAIN;
        return NULL;
    }
    n = (size_t)(end - line->text);
    object = json_loadb (line->text, n, JSON_REJECT_DUPLICATES, NULL);
    line->used -= n + 1;
    memmove (line->text, end + 1, line->used);
    if (json_is_object (object))
        return object;
    json_decref (object);
    errno = EBADMSG;
    return NULL;
}

json_t *gather_read (int fd, struct gather_line *line)
{
    json_t *object;
    ssize_t n;

    while (!(object = take_first_line (line)) && errno == EAGAIN) {
        if (grow_line (line) < 0)
            return NULL;
        n = read (fd, line->text + line->used, line->capacity - line->used);
        if (n == 0)
            errno = ECONNRESET;
        if (n <= 0)
            return NULL;
        line->used += (size_t)n;
    }
    return object;
}

json_t *gather_receive (struct net_stream *w)
{
    enum stream_read got = net_stream_read (w, GATHER_LINE);
    json_t *object;

    if (got != STREAM_WHOLE) {
        errno = got == STREAM_FAILED ? errno : EAGAIN;
        return NULL;
    }
    object = json_loadb (w->body, w->head.length, JSON_REJECT_DUPLICATES, NULL);
    net_stream_next (w);
    if (json_is_object (object))
        return object;
    json_decref (object);
    errno = EBADMSG;
    return NULL;
}

int gather_send (struct net_stream *w, const json_t *object, double deadline)
{
    char *text = json_dumps (object, JSON_COMPACT);
    int rv;

    if (!text)
        out_of_memory ();
    rv = net_stream_send (w, 0, text, strlen (text), deadline);
    free (text);
    return rv;
}

void gather_clean (char *buf, size_t size, const char *text)
{
    size_t n = 0;

    for (; text && *text && n + 1 < size; text++)
        buf[n++] = *text >= ' ' && *text <= '~' ? *text : '?';
    buf[n] = '\0';
}
