#include "launcher/view/view.h"
int cmd_compare (const struct settings *st)
{
    (void)st;
    return 0;
}
