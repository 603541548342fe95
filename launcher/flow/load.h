/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of a flow file share. */
#pragma once

#include <libconfig.h>

#include "launcher/flow/flow.h"

/* "unknown key", with the nearest one of 'groups' (NULL-ended) and 'keys'. */
struct key;
void flow_unknown_key (struct problems *p, const config_setting_t *s, const char *path,
                       const char *const *groups, const struct key *keys);

/* Read the group 'prefix' of dl-experiment(5), which messages call 'shown'. */
void flow_read_group (struct experiment *e, const config_setting_t *group, const char *prefix,
                      const char *shown, struct problems *p);

/* Its group "container", or the image alone. */
void flow_read_container (struct experiment *e, const config_setting_t *s, const char *shown,
                          struct problems *p);

/* The defaults of what flow_read_group() reads, and to free it. */
void flow_set_defaults (struct experiment *e);
void flow_free_settings (struct experiment *e);

/* Whether a text can be the name of a flow, a step or a parameter. */
bool flow_is_name (const char *text);

/* Find where each step runs. */
void flow_read_working_folder (struct flow *f, const config_t *cf, struct problems *p);

/* Read a step, after the resources of all steps (NULL: none). */
void flow_read_step (struct flow_step *st, const config_setting_t *s,
                     const config_setting_t *resources, struct problems *p);
void flow_step_free (struct flow_step *s);

/* The group "parameters", and NAME=VALUE of the command line. */
void flow_read_parameters (struct flow *f, const config_setting_t *s, struct problems *p);
void flow_set_parameter (struct flow *f, const char *text, struct problems *p);
