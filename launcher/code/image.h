/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a container: a file, a folder, or a reference. */
#pragma once

#include "launcher/config/experiment.h"

enum image_kind { SIF = 1, SQUASHFS = 2, FOLDER = 4, REFERENCE = 8 };

/* Its whole path if it is a file or folder ('dir' is where the trials run),
 * else the reference.  The caller frees it.  NULL with errno ENOENT: it can
 * only be a file, and is not there.
 */
char *container_image (const struct software *s, const char *dir);

/* The kind of what container_image() returns. */
enum image_kind image_kind_of (const char *image);
