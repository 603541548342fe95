/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a trial that is a step: srun's signals become a trainer's. */
#ifndef LAUNCHER_TRAINER_RANK_PROXY_H
#define LAUNCHER_TRAINER_RANK_PROXY_H

#include "launcher/sys/settings.h"

/* dl rank: the command that srun starts for each rank. */
int cmd_rank (const struct settings *st);

#endif
