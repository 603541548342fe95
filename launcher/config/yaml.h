/* SPDX-License-Identifier: Apache-2.0 */
/* Read an experiment file in YAML. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

/* Make of a YAML file the settings that libconfig would make of the same keys,
 * with their lines.  Mappings are groups, sequences are lists; plain scalars
 * are integers, numbers, true and false, else strings.
 *
 * Returns -1 with errno EINVAL (see 'p'), ENOENT, ....
 */
int yaml_read (config_t *cf, const char *path, struct problems *p);
