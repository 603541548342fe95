/* SPDX-License-Identifier: Apache-2.0 */
/* when= in plugstack.conf: which steps the arguments after it are for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

/* What is known of a step: all of it in its tasks. */
struct step_facts {
    enum answer gpus; /* whether it has some */
    bool known;       /* the others; "" is no name */
    char partition[64], account[64], qos[64];
};

/* "partition:gpu,debug;qos:long;gpus:no": all of the keys, each once, and one
 * of the words of each.  -1 and why if it is none.
 */
int condition_check (const char *condition, char *why, size_t size);

/* Whether it holds; "" does, an invalid one holds for no step.  'gpus': a
 * condition that does not name gpus holds only for steps that have some.
 */
enum answer condition_holds (const char *condition, const struct step_facts *facts, bool gpus);
