/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects over a socket or a pipe, a line each. */
#include "launcher/nodecheck/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"

void gather_line_free (struct gather_line *line)
{
    free (line->text);
    *line = (struct gather_line){ 0 };
}

static int grow (struct gather_line *line)
{
    size_t capacity = line->capacity ? 2 * line->capacity : 4096;
    char *text;

    if (line->used < line->capacity)
        return 0;
    errno = EMSGSIZE;
    if (capacity > GATHER_LINE || !(text = realloc (line->text, capacity)))
        return -1;
    line->text = text;
    line->capacity = capacity;
    return 0;
}

/* The first line of what was read so far, taken out of it. */
static json_t *first_line (struct gather_line *line)
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

    while (!(object = first_line (line)) && errno == EAGAIN) {
        if (grow (line) < 0)
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

static int write_all (int fd, const char *text, size_t n, double deadline)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };

    while (n > 0) {
        ssize_t sent = send (fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        double left = deadline - monotonic ();
        if (sent >= 0) {
            text += sent;
            n -= (size_t)sent;
        } else if (errno != EAGAIN)
            return -1;
        else if (left <= 0 || poll (&p, 1, (int)(left * 1000) + 1) < 0) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

int gather_write (int fd, const json_t *object, double deadline)
{
    char *text = json_dumps (object, JSON_COMPACT);
    size_t n;
    int rv;

    if (!text) {
        errno = ENOMEM;
        return -1;
    }
    n = strlen (text);
    text[n] = '\n'; /* in place of the NUL */
    rv = write_all (fd, text, n + 1, deadline);
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
