/* SPDX-License-Identifier: Apache-2.0 */
/* Read small files and folders below an open root, for topology.c. */
#pragma once

struct topology;

/* Read a file, or its first line, cut to fit and ended by 0.  Returns 0, or -1
 * with errno set and "" in 'buf'.
 */
int sysfs_file (int root, const char *path, char *buf, int size);
int sysfs_line (int root, const char *path, char *buf, int size);

/* The number at the beginning of a file, or 'otherwise'. */
long sysfs_number (int root, const char *path, long otherwise);

/* Call 'f' for each entry of a folder; a missing folder is empty. */
void sysfs_each (int root, const char *folder, struct topology *t,
                 void (*f) (int, struct topology *, const char *));
