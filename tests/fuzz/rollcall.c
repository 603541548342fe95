/* SPDX-License-Identifier: Apache-2.0 */
/* Lines from clients that connect to srun.  The token is 32 zeros. */
#include "spank/rollcall.c"

#include <fcntl.h>

#include "tests/fuzz/fuzz.h"

/* Stubs for the other half of rollcall.c, which runs in srun and in tasks. */
long variable_number (spank_t sp, const char *name)
{
    (void)sp;
    (void)name;
    return -1;
}

int variable_text (spank_t sp, const char *name, char *buf, int size)
{
    (void)sp;
    (void)name;
    (void)buf;
    (void)size;
    return -1;
}

spank_err_t spank_get_item (spank_t sp, spank_item_t item, ...)
{
    (void)sp;
    (void)item;
    return ESPANK_BAD_ARG;
}

spank_err_t spank_unsetenv (spank_t sp, const char *name)
{
    (void)sp;
    (void)name;
    return ESPANK_SUCCESS;
}

int secret_random (char text[SECRET_TEXT])
{
    (void)text;
    return -1;
}

pid_t helper_fork (int fds[2])
{
    (void)fds;
    return -1;
}

bool option_is_on (int row)
{
    return row < 0;
}

bool option_is_given (int row)
{
    return row < 0;
}

const char *option_value (int row)
{
    (void)row;
    return "";
}

void plugin_build (char build[PLUGIN_BUILD])
{
    *build = '\0';
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct rollcall *r = calloc (1, sizeof (*r));
    struct names missing = { 0 }, others = { 0 };
    char *text = fuzz_text (data, size);
    char *rest = text;
    bool content = false;

    r->content = &content;
    r->same = true;
    memset (r->token, '0', SECRET_TEXT - 1);
    while (*rest) {
        int fd = open ("/dev/null", O_RDWR | O_CLOEXEC);
        if (!take_line (r, fd, fuzz_line (&rest)))
            close (fd);
    }
    find_missing (r, &missing);
    find_other_names (r, &others);
    while (r->nposts > 0)
        drop_post (r, 0);
    free (r->answers);
    free (r);
    free (text);
    return 0;
}
