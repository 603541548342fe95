/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as JSON, with those that JSON does not have. */
#include "launcher/sys/json_number.h"

#include <math.h>
#include <stdlib.h>

json_t *number_to_json (double v)
{
    if (isnan (v))
        return json_string ("nan");
    if (isinf (v))
        return json_string (v > 0 ? "inf" : "-inf");
    return json_real (v);
}

json_t *numbers_to_json (const double *v, size_t n)
{
    json_t *list = json_array ();

    for (size_t i = 0; list && i < n; i++)
        json_array_append_new (list, number_to_json (v[i]));
    return list;
}

double number_from_json (const json_t *v)
{
    if (json_is_string (v))
        return strtod (json_string_value (v), NULL);
    return json_is_number (v) ? json_number_value (v) : NAN;
}
