/* SPDX-License-Identifier: Apache-2.0 */
/* Check the plugin and its line in plugstack.conf. */
#ifndef LAUNCHER_DOCTOR_PLUGIN_H
#define LAUNCHER_DOCTOR_PLUGIN_H

#include "launcher/doctor/site.h"

void doctor_plugstack (struct site *s);
void doctor_plugin_line (struct site *s);
void doctor_plugin_file (struct site *s);
void doctor_plugin_release (struct site *s);
void doctor_plugin_arguments (struct site *s);
void doctor_profiles (struct site *s);
void doctor_order (struct site *s);
void doctor_command (struct site *s);

#endif
