/* SPDX-License-Identifier: Apache-2.0 */
/* Record whose data a file holds, so that copies remain marked. */
#include "runtime/storage/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"

/* A user ID of ten digits and a newline follow. */
static const char origin_mark[] = "\nslurm-dl: with data of user ";
_Static_assert(sizeof (origin_mark) - 1 + 10 + 1 == ORIGIN_SIZE, "ORIGIN_SIZE");

static bool read_mark (int fd, uint64_t size, char mark[ORIGIN_SIZE + 1])
{
    mark[ORIGIN_SIZE] = '\0';
    return size >= ORIGIN_SIZE
           && io_read_at (fd, mark, ORIGIN_SIZE, (off_t)(size - ORIGIN_SIZE)) == 0
           && !memcmp (mark, origin_mark, sizeof (origin_mark) - 1);
}

uint64_t origin_at (int fd, uint64_t size)
{
    char mark[ORIGIN_SIZE + 1];

    return read_mark (fd, size, mark) ? size - ORIGIN_SIZE : size;
}

static bool is_own_id (uint32_t id)
{
    return id == 0 || id == geteuid ();
}

bool origin_mark_is_own (int fd, uint64_t size, uint32_t *owner)
{
    char mark[ORIGIN_SIZE + 1];
    unsigned long id;
    char *end;

    *owner = geteuid ();
    if (!read_mark (fd, size, mark))
        return true;
    id = strtoul (mark + sizeof (origin_mark) - 1, &end, 10);
    *owner = *end == '\n' && id < ORIGIN_OTHERS ? (uint32_t)id : ORIGIN_OTHERS;
    return is_own_id (*owner);
}

bool origin_is_own (int fd, const struct stat *st, uint32_t *owner)
{
    if (!is_own_id (st->st_uid)) {
        *owner = st->st_uid;
        return false;
    }
    if (!inside_is_of (st, geteuid ())) {
        *owner = ORIGIN_OTHERS;
        return false;
    }
    if (!origin_mark_is_own (fd, (uint64_t)st->st_size, owner))
        return false;
    *owner = st->st_uid;
    return true;
}

int origin_put (int fd, uint32_t owner)
{
    char mark[ORIGIN_SIZE + 1];
    struct stat st;

    if (fstat (fd, &st) < 0)
        return -1;
    snprintf (mark, sizeof (mark), "%s%010u\n", origin_mark, owner);
    return io_write_at (fd, mark, ORIGIN_SIZE, (off_t)origin_at (fd, (uint64_t)st.st_size));
}

enum origin_result origin_keep (int from, int to, uint32_t *owner)
{
    struct stat st;

    if (fstat (from, &st) < 0)
        return ORIGIN_FAILED;
    if (origin_is_own (from, &st, owner))
        return ORIGIN_OWN;
    return origin_put (to, *owner) < 0 ? ORIGIN_FAILED : ORIGIN_MARKED;
}
