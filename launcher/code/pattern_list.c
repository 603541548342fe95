/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of .dlignore and of the group "code". */
#include "launcher/code/code.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/sys/strings.h"

static bool pattern_matches (const char *pattern, const char *path, bool is_folder)
{
    char text[PATH_MAX];
    size_t n = strlen (pattern);
    const char *base = strrchr (path, '/');

    if (n == 0 || n >= sizeof (text) || (pattern[n - 1] == '/' && !is_folder))
        return false;
    snprintf (text, sizeof (text), "%s", pattern);
    if (text[n - 1] == '/')
        text[--n] = '\0';
    if (!strchr (text, '/'))
        return fnmatch (text, base ? base + 1 : path, FNM_PATHNAME) == 0;
    return fnmatch (text + (*text == '/'), path, strstr (text, "**") ? 0 : FNM_PATHNAME) == 0;
}

bool pattern_list_has (char *const *list, const char *path, bool is_folder)
{
    for (; list && *list; list++)
        if (pattern_matches (*list, path, is_folder))
            return true;
    return false;
}

void pattern_list_read (char ***list, const char *text)
{
    while (*text) {
        size_t n = strcspn (text, "\r\n");
        size_t used = n;

        while (used > 0 && strchr (" \t", text[used - 1]))
            used--;
        if (used > 0 && *text != '#')
            strings_add_part (list, text, used);
        text += n + (text[n] != '\0');
    }
}
