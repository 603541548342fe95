#include "launcher/view/view.h"
int cmd_plot (const struct settings *st)
{
    (void)st;
    return 0;
}
void plot_words (void)
{
}
