/* SPDX-License-Identifier: Apache-2.0 */
/* when= in plugstack.conf: selects the steps to which the arguments after it apply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

/* Facts about a step; its tasks know all of them. */
struct step_facts {
    enum answer gpus; /* whether it has GPUs */
    bool known;       /* whether the names are known; "": none */
    char partition[64], account[64], qos[64];
};

/* Check a condition such as "partition:gpu,debug;qos:long;gpus:no", which holds if every key
 * matches one of its words; each key may occur once.  Returns -1 and the reason if it is invalid.
 */
int condition_check (const char *condition, char *why, size_t size);

/* Whether a condition holds; "" always does, an invalid one never.  With 'gpus', a condition
 * without the key gpus holds only for steps that have GPUs.
 */
enum answer condition_holds (const char *condition, const struct step_facts *facts, bool gpus);
