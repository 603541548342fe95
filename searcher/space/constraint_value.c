/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluate a compiled constraint at a point. */
#include "searcher/space/constraint.h"

#include <math.h>

#include "searcher/space/constraint_op.h"

/* A number or an enum constraint_truth. */
struct constraint_value {
    double x;
    bool absent; /* a number computed from an inactive parameter */
};

static const enum constraint_truth negated[] = { TRUE, BROKEN, UNKNOWN, FALSE };

/* clang-format off */
static double calculate (enum constraint_op op, double a, double b)
{
    switch (op) {
    case OP_NOT:    return negated[(int)a];case OP_NEGATE:   return -a;
    case OP_AND:    return fmin (a, b);    case OP_OR:       return fmax (a, b);
    case OP_ABS:    return fabs (a);       case OP_SQRT:     return sqrt (a);
    case OP_LOG:    return log (a);        case OP_LOG2:     return log2 (a);
    case OP_LOG10:  return log10 (a);      case OP_EXP:      return exp (a);
    case OP_FLOOR:  return floor (a);      case OP_CEIL:     return ceil (a);
    case OP_EQ:     return a == b;         case OP_NE:       return a != b;
    case OP_LE:     return a <= b;         case OP_GE:       return a >= b;
    case OP_LT:     return a < b;          case OP_GT:       return a > b;
    case OP_ADD:    return a + b;          case OP_SUBTRACT: return a - b;
    case OP_DIVIDE: return a / b;          case OP_MULTIPLY: return a * b;
    case OP_MODULO: return fmod (a, b);    case OP_POWER:    return pow (a, b);
    case OP_MIN:    return fmin (a, b);    case OP_MAX:      return fmax (a, b);
    case OP_NUMBER: case OP_PARAM: case OP_LABEL: case OP_ACTIVE:
        break;
    }
    return NAN;
}
/* clang-format on */

static struct constraint_value combine (enum constraint_op op, struct constraint_value a,
                                        struct constraint_value b)
{
    bool absent = a.absent || b.absent;
    bool broken = isnan (a.x) || isnan (b.x);
    /* pow (NaN, 0) would be 1 and fmin (NaN, 0) 0 */
    double x = broken ? NAN : calculate (op, a.x, b.x);

    if (op < OP_EQ || op > OP_GT)
        return (struct constraint_value){ x, absent };
    x = absent ? UNKNOWN : broken ? BROKEN : x ? TRUE : FALSE;
    return (struct constraint_value){ x, false };
}

static struct constraint_value load_operand (const struct constraint *c, int i, const double *x)
{
    const struct constraint_step *s = c->step + i;
    double v = s->op == OP_NUMBER ? s->value : x[s->index];
    bool absent = isnan (v);

    if (s->op == OP_ACTIVE)
        return (struct constraint_value){ absent ? FALSE : TRUE, false };
    if (s->op == OP_LABEL)
        v = v >= 0 && v < s->count ? c->label[(int)s->value + (int)v] : NAN;
    return (struct constraint_value){ v, absent };
}

static enum constraint_truth evaluate (const struct constraint *c, const double *x)
{
    /* each step but the first consumes a value; the initial one is for an empty program */
    struct constraint_value stack[1 + (CONSTRAINT_STEPS + 1) / 2] = { { TRUE, false } };
    struct constraint_value *top = stack + 1;

    for (int i = 0; i < c->used; i++) {
        enum constraint_op op = c->step[i].op;
        if (op < OP_NOT)
            *top++ = load_operand (c, i, x);
        else if (op < OP_AND)
            top[-1] = combine (op, top[-1], top[-1]);
        else {
            top--;
            top[-1] = combine (op, top[-1], *top);
        }
    }
    return (enum constraint_truth)top[-1].x;
}

bool constraint_holds (const struct constraint *c, const double *x)
{
    return evaluate (c, x) >= UNKNOWN;
}

bool constraint_is_true (const struct constraint *c, const double *x)
{
    return evaluate (c, x) == TRUE;
}
