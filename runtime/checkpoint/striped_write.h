/* SPDX-License-Identifier: Apache-2.0 */
/* Write memory into a file at the speed of the disk, summing it up. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct memory_ops;

/* Bytes that belong at a place of the file. */
struct extent {
    uint64_t at;
    uint64_t bytes;
    const unsigned char *data;
    const struct memory_ops *device; /* NULL: the host's memory */
    uint32_t *crc;                   /* goes on with these bytes; NULL: not wanted */
};

/* Write the extents, which are in order of place and do not overlap, past the
 * page cache where 'direct' (a descriptor with O_DIRECT, or -1) takes them,
 * else through 'fd'.  Several threads copy, sum up and write.
 *
 * Returns 0, or -1 with errno set.
 */
int pour (int fd, int direct, const struct extent *list, size_t n);

/* Open 'path' with O_DIRECT; -1 if the file system does not have it, or
 * DL_DIRECT=0 forbids it.
 */
int pour_open_direct (const char *path);
