/* SPDX-License-Identifier: Apache-2.0 */
/* A constraint: an expression that a point of a space must satisfy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "batch * hidden <= 65536 && (layers > 1 || dropout == 0)", compiled once and
 * evaluated at many points.  Operators, in order of increasing precedence:
 *
 *   a || b   a or b
 *   a && b   a and b
 *   not a                      negates a whole comparison: not a == b
 *   == != < <= > >=            no chains: write a < b && b < c
 *   + -
 *   * / %                      % as fmod(): the sign is that of the left side
 *   -a  !a                     !(a == b); -2^2 is -4
 *   a ^ b                      power, right-associative: 2^3^2 is 2^9
 *   (a)  1  .5  2e-3  true  false
 *   abs log log2 log10 exp sqrt floor ceil (a), min max (a, b, ...)
 *   active(name)               true if the parameter is active
 *   name  `name`               a parameter
 *   'text'  "text"             a choice of a parameter
 *
 * A name with other characters than letters, digits, _ and . (or one that is
 * true, false or not) is written in backquotes.  Quotes have no escapes.  A name
 * before a parenthesis is a function, so that a parameter may be called "min".
 *
 * Comparisons take numbers and return truth values, which || && ! take.  == and
 * != compare a parameter with choices to a text; "true" and "false" need no
 * quotes there.  Everywhere else such a parameter stands for the number that its
 * choice spells ("32", "1e-3"), and every choice must spell one.
 *
 * A comparison that reads an inactive parameter is unknown, and so is its
 * negation; unknown && false is false, unknown || true is true, everything else
 * is unknown.  An unknown constraint holds: it forbids nothing about an inactive
 * parameter.
 *
 * Numbers follow IEEE 754: 1 / 0 is infinity.  A comparison with an undefined
 * number (0 / 0, log(-1), or any result computed from one) is broken, which
 * propagates like unknown.  A broken constraint does not hold, nor does its
 * negation.  broken && unknown is broken, broken || unknown is unknown.
 */

enum {
    CONSTRAINT_STEPS = 128,  /* of a program */
    CONSTRAINT_LABELS = 256, /* of the parameters to calculate with */
    CONSTRAINT_DEPTH = 64,   /* of nesting: 63 parentheses */
    CONSTRAINT_TEXT = 65535, /* bytes */
};

struct constraint_step {
    int16_t op;
    int16_t count; /* of labels */
    int32_t index; /* of a parameter */
    double value;  /* a number, or where the labels begin */
};

/* A program without pointers, which can be copied and saved as bytes; equal texts
 * compile to equal bytes.  A program of zeros always holds.
 */
struct constraint {
    int32_t used;   /* steps */
    int32_t labels; /* numbers in 'label' */
    struct constraint_step step[CONSTRAINT_STEPS];
    double label[CONSTRAINT_LABELS];
};

/* The 'n' parameters.  labels[i] is NULL for a number, else its nlabels[i]
 * choices, all different.
 */
struct constraint_names {
    const char *const *names;
    const char *const *const *labels;
    const long *nlabels;
    size_t n;
    /* The members below may be zero. */
    const bool *open; /* whether parameter i may have other choices, too */
    bool bare;        /* treat a name that is no parameter as unquoted text */
};

/* Compile 'text'.  'text' and 'names' may be freed afterwards.  The locale must
 * use a decimal point (LC_NUMERIC "C").
 *
 * Returns NULL and sets *column to 0.  On an error, returns a constant sentence that
 * says what is wrong at byte *column (from 1), sets errno to ENOENT for an unknown name,
 * EDOM for an unknown choice or EINVAL, and leaves *c unchanged.
 */
const char *constraint_compile (struct constraint *c, const char *text,
                                const struct constraint_names *names, int *column);

/* Whether a point satisfies it.  x[i] is the value of parameter i, or the index
 * of its choice, or NaN if it is inactive.  The number of a choice that does not
 * exist is undefined.
 */
bool constraint_holds (const struct constraint *c, const double *x);

/* The same, but an unknown constraint does not hold. */
bool constraint_is_true (const struct constraint *c, const double *x);
