/* SPDX-License-Identifier: Apache-2.0 */
/* Read the small files of proc(5). */
#include "launcher/sys/proc.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t proc_read (int dir, const char *path, char *buf, size_t size)
{
    int fd = openat (dir, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 0;
    size_t n = 0;

    while (fd >= 0 && n < size - 1 && (got = read (fd, buf + n, size - 1 - n)) > 0)
        n += (size_t)got;
    if (fd >= 0)
        close (fd);
    buf[got < 0 ? 0 : n] = '\0';
    return got < 0 ? -1 : (ssize_t)n;
}

double proc_number (int dir, const char *path)
{
    char text[64];
    char *end;
    double v;

    if (proc_read (dir, path, text, sizeof (text)) < 0)
        return NAN;
    v = strtod (text, &end);
    return end == text ? NAN : v;
}

pid_t proc_next (DIR *proc)
{
    struct dirent *e;

    while ((e = readdir (proc)))
        if (*e->d_name >= '1' && *e->d_name <= '9')
            return (pid_t)atol (e->d_name);
    return 0;
}

/* The name may contain any character, even ')', so look for the last ')'. */
int proc_stat (int dir, const char *path, struct proc_stat *s)
{
    char text[2048];
    char *name, *end;

    if (proc_read (dir, path, text, sizeof (text)) <= 0 || !(name = strchr (text, '('))
        || !(end = strrchr (text, ')')))
        return -1;
    *s = (struct proc_stat){ .state = '?' };
    *end = '\0';
    snprintf (s->name, sizeof (s->name), "%.15s", name + 1);
    if (sscanf (end + 1,
                " %c %d %*d %*d %*d %*d %*u %lu %*u %lu %*u %lu %lu %lu %lu "
                "%*d %*d %ld %*d %lu %*u %lu",
                &s->state, &s->parent, &s->minor_faults, &s->major_faults, &s->user, &s->system,
                &s->user_ended, &s->system_ended, &s->threads, &s->start, &s->resident)
        != 11)
        return -1;
    s->exit_status = (int)strtol (strrchr (end + 1, ' '), NULL, 10);
    return 0;
}
