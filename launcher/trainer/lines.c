/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the lines of a file that grows. */
#include "launcher/trainer/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_SIZE = 8192, TRIES = 3 };

struct line_reader {
    struct pattern **patterns;
    pattern_metric_f f;
    void *arg;
    char line[LINE_SIZE];
    size_t fill;
};

struct line_reader *lines_create (char **texts, pattern_metric_f f, void *arg)
{
    struct line_reader *l = calloc (1, sizeof (*l));
    size_t n = 0;

    while (texts && texts[n])
        n++;
    if (!l || !(l->patterns = calloc (n + 1, sizeof (*l->patterns))))
        goto fail;
    l->f = f;
    l->arg = arg;
    for (size_t i = 0; i < n; i++)
        if (!(l->patterns[i] = pattern_create (texts[i], NULL)))
            goto fail;
    return l;
fail:
    lines_destroy (l);
    return NULL;
}

void lines_destroy (struct line_reader *l)
{
    if (!l)
        return;
    for (size_t i = 0; l->patterns && l->patterns[i]; i++)
        pattern_destroy (l->patterns[i]);
    free (l->patterns);
    free (l);
}

bool lines_wanted (const struct line_reader *l)
{
    return l->patterns[0];
}

static void end_line (struct line_reader *l)
{
    l->line[l->fill] = '\0';
    line_strip (l->line);
    for (size_t i = 0; l->patterns[i]; i++)
        pattern_match (l->patterns[i], l->line, l->f, l->arg);
    l->fill = 0;
}

/* What a file server refuses once it may give at the next try. */
static ssize_t read_some (int fd, char *buf, size_t size, off_t at)
{
    ssize_t n = -1;

    for (int i = 0; n < 0 && (i < TRIES || errno == EINTR); i++)
        n = pread (fd, buf, size, at);
    return n;
}

int lines_read (struct line_reader *l, int fd, off_t *at)
{
    char buf[16384];
    ssize_t n;

    while ((n = read_some (fd, buf, sizeof (buf), *at)) > 0) {
        *at += n;
        for (ssize_t i = 0; i < n; i++) {
            /* a progress bar ends its lines by going back to their start */
            if (buf[i] == '\n' || buf[i] == '\r' || buf[i] == '\b')
                end_line (l);
            else if (l->fill < LINE_SIZE - 1 && buf[i])
                l->line[l->fill++] = buf[i];
        }
    }
    return n < 0 ? -1 : 0;
}

void lines_end (struct line_reader *l)
{
    if (l->fill)
        end_line (l);
}
