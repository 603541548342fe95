/* SPDX-License-Identifier: Apache-2.0 */
/* Check the containers and environments of the steps of a flow. */
#pragma once

#include <libconfig.h>

#include "launcher/flow/flow.h"

/* A step's own, or that of all; a sweep has that of its experiment file. */
const struct software *flow_software_of (const struct flow *f, const struct flow_step *s);

/* Check what a flow file says of them, without a look at the file system. */
void flow_check_software (struct flow *f, const config_t *cf, struct problems *p);

/* Look whether they are there, each once.  With 'local' the runtime must be on
 * this machine, too; with 'loads' they are loaded, which runs code that the
 * file names.
 */
void flow_find_software (const struct flow *f, bool local, bool loads, struct problems *p);

/* What tasks of a step depend on, for the key of the cache; NULL: nothing. */
json_t *flow_software_key (const struct flow *f, const struct flow_step *s);
