/* SPDX-License-Identifier: Apache-2.0 */
/* Detect hangs of the ranks of a step, and act on them. */
#pragma once

#include "launcher/debug/watcher.h"

/* All ranks of the step make no progress. */
void hang_check (struct watcher *w);
/* Some of this node do not: they may wait for others that save or evaluate. */
void hang_check_part (struct watcher *w);
/* A rank has ended, and the others wait for it. */
void hang_check_end (struct watcher *w);
/* Take part in the dumps that others requested, and act on their cause. */
void hang_serve (struct watcher *w);
