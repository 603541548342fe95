/* SPDX-License-Identifier: Apache-2.0 */
/* Read the stacks of all ranks and find the ranks that are elsewhere. */
#pragma once

#include <stddef.h>

/* A file of stacks is text.  Lines that begin with "== " divide it:
 *
 *     == rank 3 on n2
 *     == process 4711 python S
 *     == python        then what faulthandler writes
 *     == native        then what gdb or eu-stack writes
 *     == kernel        then one line a thread: TID NAME STATE WCHAN SYSCALL
 *
 * The line of a process ends with its state (see proc(5)) and, if it works for
 * another process of the rank, such as a data loader, with "helper".
 */

struct stack_frame {
    char function[96];
    char file[192]; /* "": unknown */
    long line;      /* 0: unknown */
};

/* Where the main thread of one process is. */
struct stack {
    long rank; /* -1: unknown */
    long pid;
    char host[64];
    char name[16];
    char state;
    struct stack_frame top;  /* innermost informative frame */
    struct stack_frame user; /* innermost frame outside libraries */
};

/* Parse a file of stacks and append one stack for each process that is not a helper.
 * Unknown text is skipped.  Returns the new number of stacks, at most 'max'.
 */
size_t stacks_parse (const char *text, struct stack *stacks, size_t n, size_t max);

/* Number the places so that the one with the most ranks is 0, store each stack's place
 * in 'group', and sort by place and rank.  Returns the number of places.
 */
size_t stacks_group (struct stack *stacks, size_t n, size_t *group);

/* Describe a place: "all_reduce (distributed_c10d.py:1320) from step (train.py:41)",
 * after "stopped (SIGSTOP) in " or the like.  Returns buf.
 */
char *stack_place (const struct stack *s, char *buf, size_t size);

/* List the ranks of one group: "0-2,5".  Returns buf. */
char *stacks_ranks (const struct stack *stacks, size_t n, char *buf, size_t size);

/* Summarize the first four places in a line such as "3 ranks (0,2-3) are in A;
 * rank 1 is in B".  Returns buf.
 */
char *stacks_line (const struct stack *stacks, const size_t *group, size_t n, char *buf,
                   size_t size);
