int gnuplot_stub;
