/* SPDX-License-Identifier: Apache-2.0 */
/* The last line that an attempt printed. */
#include "launcher/worker/last_line.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/small_file.h"
#include "runtime/storage/inside.h"

enum { TAIL = 16384 };

static size_t read_tail (const char *dir, char buf[TAIL + 1])
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/log", dir) >= (int)sizeof (path))
        return 0;
    return file_tail (inside_open_any (path, O_RDONLY, 0, NULL), buf, TAIL);
}

static bool is_end (char c)
{
    return c == '\n' || c == '\r' || c == '\0';
}

/* Not the trainer's: Slurm's, or the note of an attempt that goes on from an
 * older one (resume_dir.h).
 */
static bool is_note (const char *line)
{
    return !strncmp (line, "srun: ", 6) || !strncmp (line, "slurmstepd: ", 12)
           || !strncmp (line, "dl: this attempt ", 17);
}

/* Cut the last line off; NULL: there is none left. */
static char *cut_line (char *buf, size_t *n)
{
    size_t start;

    while (*n > 0 && (is_end (buf[*n - 1]) || buf[*n - 1] == ' '))
        (*n)--;
    if (*n == 0)
        return NULL;
    buf[*n] = '\0';
    for (start = *n; start > 0 && !is_end (buf[start - 1]);)
        start--;
    *n = start;
    return buf + start + strspn (buf + start, " \t");
}

int last_line (const char *dir, char line[LAST_LINE])
{
    char buf[TAIL + 1];
    size_t n = read_tail (dir, buf);
    char *text;

    while ((text = cut_line (buf, &n)))
        if (*text && !is_note (text)) {
            snprintf (line, LAST_LINE, "%s", text);
            return 0;
        }
    return -1;
}

bool last_lines_have (const char *dir, const char *const *texts)
{
    char buf[TAIL + 1];
    size_t n = read_tail (dir, buf);

    for (; *texts; texts++)
        if (memmem (buf, n, *texts, strlen (*texts)))
            return true;
    return false;
}
