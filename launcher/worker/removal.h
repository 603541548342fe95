/* SPDX-License-Identifier: Apache-2.0 */
/* Remove the file of a checkpoint, and nothing outside its folder. */
#pragma once

/* Remove a file, and if it is a link of ours, what it leads to.  Returns -1
 * with errno; a file that is not there is no failure.
 */
int removal_file (const char *path);

/* Remove the folder of 'path' if it is empty: it is an inode as well. */
void removal_folder (const char *path);
