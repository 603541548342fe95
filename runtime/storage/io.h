/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write a complete range of a file. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Return 0, or -1 with errno set; a file that ends early is EIO. */
int io_write_at (int fd, const void *buf, size_t len, off_t at);
int io_read_at (int fd, void *buf, size_t len, off_t at);
