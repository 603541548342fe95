/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a webhook, which is a secret, and what curl is told. */
#pragma once

#include "launcher/config/experiment.h"
#include "runtime/slurmdl.h"

/* curl's configuration, to post 'json' to the URL that notify.webhook names:
 * what arguments have, all users of the machine may read.  The caller frees it.
 * NULL with 'err', which does not have the URL.
 */
char *webhook_config (const struct experiment *e, const char *json, struct slurmdl_error *err);

/* Whether there is such a URL, or none is wanted: 0, or -1 with 'err'. */
int webhook_check (const struct experiment *e, struct slurmdl_error *err);

/* That of the experiment file, also where trials run in a frozen copy of it. */
const char *notice_folder (const struct experiment *e);
