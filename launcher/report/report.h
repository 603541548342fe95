/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl report. */
#ifndef LAUNCHER_REPORT_REPORT_H
#define LAUNCHER_REPORT_REPORT_H

#include "launcher/sys/settings.h"

/* Returns an exit status of launcher/sys/say.h. */
int cmd_report (const struct settings *st);

#endif
