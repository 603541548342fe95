#include "launcher/view/view.h"
int cmd_failures (const struct settings *st)
{
    (void)st;
    return 0;
}
