/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of the commands about experiments, for main()'s table. */
#pragma once

#include "launcher/sys/settings.h"

/* Each returns an exit status of launcher/sys/say.h. */
int cmd_run (const struct settings *st);
int cmd_try (const struct settings *st);
int cmd_preview (const struct settings *st);
int cmd_ls (const struct settings *st);
int cmd_show (const struct settings *st);
int cmd_logs (const struct settings *st);
int cmd_stop (const struct settings *st);
int cmd_resume (const struct settings *st);
int cmd_gc (const struct settings *st);
int cmd_diff (const struct settings *st);
int cmd_reproduce (const struct settings *st);
int cmd_export (const struct settings *st);
int cmd_import (const struct settings *st);
int cmd_pause (const struct settings *st);
int cmd_kill (const struct settings *st);
int cmd_continue (const struct settings *st);
int cmd_retry (const struct settings *st);
int cmd_fork (const struct settings *st);
int cmd_wait (const struct settings *st);
int cmd_archive (const struct settings *st);
int cmd_label (const struct settings *st);
int cmd_exclude (const struct settings *st);
int cmd_rm (const struct settings *st);
int cmd_log (const struct settings *st);
int cmd_worker (const struct settings *st);
int cmd_scale (const struct settings *st);
int cmd_requeue (const struct settings *st);
int cmd_attend (const struct settings *st);
