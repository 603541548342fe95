/* SPDX-License-Identifier: Apache-2.0 */
/* The results at one rung of a bracket, ranked. */
#include "searcher/schedulers/rung.h"

#include <string.h>

/* Results are numbered in the order in which they arrive and kept in two heaps:
 * the top results, with the worst of them at the root, and the rest, with the
 * best of them at the root.  One report moves at most one result between the
 * heaps, which share one array and grow from its ends.
 */
struct results rung_results (struct searcher *s, struct bracket *b, int rung)
{
    int64_t capacity = b->capacity;
    int64_t at = b->results + (rung - b->first) * capacity * RESULT_SIZE;
    int64_t after = at + capacity * (int64_t)sizeof (double);
    int32_t *trial = searcher_at (s, after);

    return (struct results){
        b->rung + rung, capacity, searcher_at (s, at), trial, trial + capacity,
    };
}

struct heap {
    int32_t *root;
    int step; /* to the next element: 1 or -1 */
    int64_t n;
    bool worst_first;
    const double *value;
};

static struct heap top_heap (const struct results *r)
{
    return (struct heap){ r->ranked, 1, r->rung->top, true, r->value };
}

static struct heap rest_heap (const struct results *r)
{
    return (struct heap){ r->ranked + r->capacity - 1, -1, r->rung->results - r->rung->top, false,
                          r->value };
}

static bool value_is_better (const double *value, int32_t a, int32_t b)
{
    return value[a] < value[b] || (value[a] == value[b] && a < b);
}

static int32_t *heap_at (const struct heap *h, int64_t i)
{
    return h->root + i * h->step;
}

/* Whether 'a' belongs nearer to the root than 'b'. */
static bool heap_before (const struct heap *h, int32_t a, int32_t b)
{
    return h->worst_first ? value_is_better (h->value, b, a) : value_is_better (h->value, a, b);
}

static void heap_push (struct heap *h, int32_t result)
{
    int64_t i = h->n++;

    while (i > 0 && heap_before (h, result, *heap_at (h, (i - 1) / 2))) {
        *heap_at (h, i) = *heap_at (h, (i - 1) / 2);
        i = (i - 1) / 2;
    }
    *heap_at (h, i) = result;
}

static int32_t heap_pop (struct heap *h)
{
    int32_t popped = *h->root, last = *heap_at (h, --h->n);
    int64_t i = 0, child;

    while ((child = 2 * i + 1) < h->n) {
        if (child + 1 < h->n && heap_before (h, *heap_at (h, child + 1), *heap_at (h, child)))
            child++;
        if (!heap_before (h, *heap_at (h, child), last))
            break;
        *heap_at (h, i) = *heap_at (h, child);
        i = child;
    }
    *heap_at (h, i) = last;
    return popped;
}

/* Returns the result that has entered the top, or -1. */
static int32_t rank_result (struct results *r, int32_t result, int64_t share)
{
    struct heap top = top_heap (r), rest = rest_heap (r);
    int32_t risen = -1;

    if (top.n > 0 && value_is_better (r->value, result, *top.root)) {
        heap_push (&top, risen = result);
        if (top.n > share)
            heap_push (&rest, heap_pop (&top));
    } else {
        heap_push (&rest, result);
        if (top.n < share)
            heap_push (&top, risen = heap_pop (&rest));
    }
    r->rung->top = top.n;
    r->rung->results++;
    return risen;
}

int32_t rung_add (struct results *r, long trial, double value, int64_t share)
{
    int32_t result = r->rung->results;

    r->trial[result] = trial;
    r->value[result] = value;
    return rank_result (r, result, share);
}

void rung_resize (struct results *r, int64_t share)
{
    struct heap top = top_heap (r), rest = rest_heap (r);

    while (top.n > share)
        heap_push (&rest, heap_pop (&top));
    while (top.n < share && rest.n > 0)
        heap_push (&top, heap_pop (&rest));
    r->rung->top = top.n;
}

/* A sorted heap is still a heap. */
void rung_sort (struct results *r)
{
    struct heap top = top_heap (r);
    int64_t n = top.n;

    while (top.n > 0) {
        int32_t worst = heap_pop (&top);
        r->ranked[top.n] = worst;
    }
    for (int64_t i = 0; i < n / 2; i++) {
        int32_t better = r->ranked[i];
        r->ranked[i] = r->ranked[n - 1 - i];
        r->ranked[n - 1 - i] = better;
    }
}

/* Rebuild the heap without one result, and renumber those after it. */
static void heap_drop (struct heap *h, int32_t result)
{
    int64_t n = h->n;

    h->n = 0;
    for (int64_t i = 0; i < n; i++)
        if (*heap_at (h, i) != result)
            heap_push (h, *heap_at (h, i));
    for (int64_t i = 0; i < h->n; i++)
        *heap_at (h, i) -= *heap_at (h, i) > result;
}

void rung_remove (struct results *r, long trial)
{
    struct heap top = top_heap (r), rest = rest_heap (r);
    int64_t share = top.n, i = 0, after;

    while (i < r->rung->results && r->trial[i] != trial)
        i++;
    if (i == r->rung->results)
        return;
    heap_drop (&top, i);
    heap_drop (&rest, i);
    after = --r->rung->results - i;
    memmove (r->value + i, r->value + i + 1, after * sizeof (*r->value));
    memmove (r->trial + i, r->trial + i + 1, after * sizeof (*r->trial));
    r->rung->top = top.n;
    rung_resize (r, share);
}

void rung_move (struct results *to, const struct results *from)
{
    int64_t n = from->rung->results, rest = n - from->rung->top;

    memcpy (to->value, from->value, n * sizeof (*to->value));
    memcpy (to->trial, from->trial, n * sizeof (*to->trial));
    memcpy (to->ranked, from->ranked, from->rung->top * sizeof (*to->ranked));
    memcpy (to->ranked + to->capacity - rest, from->ranked + from->capacity - rest,
            rest * sizeof (*to->ranked));
}

int32_t rung_best (const struct results *r)
{
    struct heap top = top_heap (r), rest = rest_heap (r);
    int32_t best = -1;

    if (top.n == 0)
        return rest.n > 0 ? *rest.root : -1;
    for (int64_t i = 0; i < top.n; i++)
        if (best < 0 || value_is_better (r->value, r->ranked[i], best))
            best = r->ranked[i];
    return best;
}
