/* SPDX-License-Identifier: Apache-2.0 */
/* Check the plugin and its line in plugstack.conf. */
#pragma once

#include "launcher/node/doctor_site.h"

/* Checks of the plugin, rows of the table in doctor.c; each adds its findings
 * to 's': whether plugstack.conf can be read and has a line of dl.so, who may
 * write to that file, the release that it was built for, its arguments, the
 * site's profiles, its place beside pyxis, and the command dl that it starts.
 */
void doctor_plugstack (struct site *s);
void doctor_plugin_line (struct site *s);
void doctor_plugin_file (struct site *s);
void doctor_plugin_release (struct site *s);
void doctor_plugin_arguments (struct site *s);
void doctor_profiles (struct site *s);
void doctor_order (struct site *s);
void doctor_command (struct site *s);
