/* SPDX-License-Identifier: Apache-2.0 */
/* The watcher of the ranks of a node, and what it observes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "launcher/debug/live_ranks.h"
#include "launcher/debug/progress.h"
#include "launcher/debug/python_stacks.h"
#include "runtime/storage/own_folder.h"

struct watcher {
    const char *dir; /* its name, for messages */
    struct own_folder folder;
    double limit;
    pid_t task; /* the one that started this */
    bool kills;
    char host[64];
    char node[32]; /* number of the node in the step */
    struct roots roots;
    struct rank_progress *progress;
    struct samples samples;
    double begun, touched, looked, sampled;
    double others; /* when they last made progress */
    long nothers;  /* watchers of other nodes */
    long most;     /* the most that there were of them at a time */
    long served;   /* number of the last dump that this node is in */
    int own_dumps;
    bool hang_reported, end_reported, part_reported;
    long without_reason; /* this dump, since then */
    double since;
};

/* Whether the step has no ranks here, and will have none. */
bool watcher_is_over (const struct watcher *w);
/* Seconds until the next look if there is no rank. */
double watcher_idle (const struct watcher *w);
/* Find the ranks; 'arg' is a struct watcher. */
bool watcher_has_ranks (void *arg);

/* Observe the progress of the ranks; 'asked' as for progress_look(). */
void watcher_look (struct watcher *w, double asked);
/* Compare the Python stacks of ranks without visible progress. */
void watcher_sample (struct watcher *w);

/* How many of this node's ranks have made no progress for so long. */
size_t watcher_count_quiet (const struct watcher *w, double seconds);
/* Whether no rank of the step has, on any node. */
bool watcher_all_quiet (struct watcher *w, double seconds);

/* Write the file of this watcher, or remove it. */
void watcher_touch (struct watcher *w);
void watcher_forget (struct watcher *w);
