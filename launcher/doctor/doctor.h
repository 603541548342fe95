/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl doctor. */
#ifndef LAUNCHER_DOCTOR_DOCTOR_H
#define LAUNCHER_DOCTOR_DOCTOR_H

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_doctor (const struct settings *st);

#endif
