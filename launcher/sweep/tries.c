/* SPDX-License-Identifier: Apache-2.0 */
/* How often to try. */
#include "launcher/sweep/tries.h"

/* If so many attempts are lost without a known cause, perhaps to the OOM killer, the next one must
 * not kill yet another worker.
 */
enum { LOST_MAX = 20 };

bool tries_add (struct tries *t, struct try_end end, int64_t max)
{
    if (end.progress)
        *t = (struct tries){ 0 };
    else if (end.free)
        t->lost++;
    else
        t->failed++;
    return end.last || (!end.progress && (end.free ? t->lost > LOST_MAX : t->failed > max));
}
