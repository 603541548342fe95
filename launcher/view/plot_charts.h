/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of dl plot, as commands of gnuplot's. */
#pragma once

#include <stdio.h>

#include "launcher/report/curves.h"
#include "launcher/report/params.h"
#include "launcher/sys/settings.h"
#include "launcher/view/gnuplot.h"

struct plot {
    const struct settings *st;
    FILE *f;
    enum plot_medium medium;
    struct report report;
    struct report_params params;
    struct curves curves;
    long *order; /* trials with a finite value, the best first */
    long n;
    const struct report_param *param; /* of scatter */
};

/* 'draw' writes its commands to plot.f; -1 after a line that says why not. */
struct plot_kind {
    const char *name;
    int (*draw) (struct plot *p);
    bool curves, param; /* it needs them */
};
extern const struct plot_kind plot_kinds[]; /* ended by name NULL */

/* What all charts have, before each. */
void plot_style (const struct plot *p);
