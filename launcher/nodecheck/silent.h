/* SPDX-License-Identifier: Apache-2.0 */
/* Name the nodes of a step that never answered the collector. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* 'nodes' is a list as Slurm writes it after "=", if they are those of the
 * step, after "~", if the step may have had fewer; or "" for nothing to say.
 * ranks[] has what each of 'size' ranks reported, NULL if it did not.  Tasks of
 * a node without the plugin wait for no verdict: the step is over before there
 * is one.
 */
void silent_print (const char *nodes,
                   json_t *const *ranks,
                   long size,
                   FILE *to);
