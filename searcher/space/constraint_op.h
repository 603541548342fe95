/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a compiled constraint, and the truth values that they produce. */
#pragma once

/* && takes the smaller of two, || the greater.  A comparison is BROKEN if a
 * number is undefined, UNKNOWN if a parameter is inactive.
 */
enum constraint_truth { FALSE, BROKEN, UNKNOWN, TRUE };

/* In constraint_step.op: the order gives the number of values a step takes. */
/* clang-format off */
enum constraint_op {
    /* push a value */
    OP_NUMBER, OP_PARAM, OP_LABEL, OP_ACTIVE,
    /* replace one */
    OP_NOT, OP_NEGATE, OP_ABS, OP_LOG, OP_LOG2, OP_LOG10, OP_EXP, OP_SQRT,
    OP_FLOOR, OP_CEIL,
    /* make one of two */
    OP_AND, OP_OR, OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT, OP_ADD,
    OP_SUBTRACT, OP_MULTIPLY, OP_DIVIDE, OP_MODULO, OP_POWER, OP_MIN, OP_MAX,
};
/* clang-format on */
