/* SPDX-License-Identifier: Apache-2.0 */
/* Remove the folder of an experiment. */
#include "launcher/sweep/remove.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/sys/remove_tree.h"
#include "runtime/base/error.h"
#include "runtime/storage/link.h"

/* Under its hidden name no worker and no other command finds it. */
int sweep_remove (const char *dir, struct slurmdl_error *err)
{
    const char *base = strrchr (dir, '/') + 1;
    char visible[PATH_MAX];
    char hidden[PATH_MAX];

    snprintf (visible, sizeof (visible), "%.*s.removed-%s", (int)(base - dir), dir, base);
    link_tmp_name (hidden, sizeof (hidden), visible);
    if (rename (dir, hidden) < 0)
        return errorf (err, "%s: cannot remove: %s", dir, strerror (errno));
    if (remove_tree (hidden) == 0)
        return 0;
    return errorf (err, "%s: removed in part: %s; the remaining files are in %s", dir,
                   strerror (errno), hidden);
}
