/* SPDX-License-Identifier: Apache-2.0 */
/* A constraint: an expression that a point of a space must satisfy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "batch * hidden <= 65536 && (layers > 1 || dropout == 0)", compiled once
 * and asked of many points.  From the loosest to the tightest:
 *
 *   a || b   a or b
 *   a && b   a and b
 *   not a                      of a whole comparison: not a == b
 *   == != < <= > >=            not in a chain: a < b && b < c
 *   + -
 *   * / %                      % as fmod(): the sign is that of the left side
 *   -a  !a                     !(a == b), and -2^2 is -4
 *   a ^ b                      power, from the right: 2^3^2 is 2^9
 *   (a)  1  .5  2e-3  true  false
 *   abs log log2 log10 exp sqrt floor ceil (a), min max (a, b, ...)
 *   active(name)               true if the parameter is active
 *   name  `name`               a parameter
 *   'text'  "text"             a choice of a parameter
 *
 * A name that is not made of letters, digits, _ and . (or is true, false or
 * not) stands in backquotes.  In quotes nothing is special.  A function is
 * a name before a parenthesis, so that a parameter may be called "min".
 *
 * Comparisons take numbers and give truth values, which is what || && ! take.
 * A parameter with choices is compared with a text by == and !=, where a
 * choice "true" or "false" needs no quotes; everywhere else it stands for the
 * number that its choice spells ("32", "1e-3"), and each must spell one.
 *
 * Whether an inactive parameter fits cannot be known.  A comparison that reads
 * one is unknown, and so is its negation; unknown && false is false, unknown
 * || true is true, else unknown stays.  A constraint that is unknown holds: it
 * forbids nothing about a parameter that is not there.
 *
 * Numbers follow IEEE 754: 1 / 0 is above any other.  A comparison with a
 * number that does not exist (0 / 0, log(-1), whatever is calculated from
 * these) is broken, which spreads as unknown does, and a constraint that is
 * broken does not hold, nor does its negation.  Where both meet, broken &&
 * unknown is broken and broken || unknown is unknown.
 */

enum {
    CONSTRAINT_STEPS = 128,  /* of a program */
    CONSTRAINT_LABELS = 256, /* of the parameters to calculate with */
    CONSTRAINT_DEPTH = 64,   /* values in one another: 63 parentheses */
    CONSTRAINT_TEXT = 65535, /* bytes */
};

struct constraint_step {
    int16_t op;
    int16_t count; /* of labels */
    int32_t index; /* of a parameter */
    double value;  /* a number, or where the labels begin */
};

/* A program without pointers: it can be copied and saved as bytes, and the
 * same text gives the same bytes.  One that is all 0 holds always.
 */
struct constraint {
    int32_t used;   /* steps */
    int32_t labels; /* numbers in 'label' */
    struct constraint_step step[CONSTRAINT_STEPS];
    double label[CONSTRAINT_LABELS];
};

/* The 'n' parameters.  labels[i] is NULL for a number, else the texts of its
 * choices, nlabels[i] of them and no two alike.
 */
struct constraint_names {
    const char *const *names;
    const char *const *const *labels;
    const long *nlabels;
    size_t n;
    /* What follows may be zero. */
    const bool *open; /* whether parameter i may have other choices, too */
    bool bare;        /* a name of no parameter is a text without its quotes */
};

/* Compile 'text'; nothing of it or of 'names' is needed later.  The locale
 * must write numbers with a point (LC_NUMERIC "C").
 *
 * Returns NULL and sets *column to 0, or returns a constant sentence about
 * what is wrong at the byte *column (from 1), and leaves *c as it was.
 */
const char *constraint_compile (struct constraint *c, const char *text,
                                const struct constraint_names *names, int *column);

/* Does a point satisfy it?  x[i] is the value of parameter i, or the index of
 * its choice, or NaN if it is inactive.  A choice that there is not has a
 * number that does not exist.
 */
bool constraint_holds (const struct constraint *c, const double *x);

/* The same, but what is unknown does not hold. */
bool constraint_is_true (const struct constraint *c, const double *x);
