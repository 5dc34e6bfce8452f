# Draws the samples of ./dev bench soak: gnuplot -e "samples='…csv'; picture='…png'" soak.gnuplot
set terminal png size 1100,1250 font ",11"
set output picture
set datafile separator ','
set key autotitle columnhead top left
set xlabel 'seconds'
set grid
set yrange [0:]
set multiplot layout 5,1
set title 'resident memory, MiB'
plot samples using 1:2 with lines lw 2 title 'memory'
set title 'open file descriptors'
plot samples using 1:3 with lines lw 2 title 'descriptors'
set title 'files, MiB'
plot samples using 1:4 with lines lw 2 title 'log (WAL)', samples using 1:5 with lines lw 2 title 'database'
set logscale y
set yrange [0.1:*]
set title 'reads, ms'
plot samples using 1:7 with lines lw 2 title 'p50', samples using 1:8 with lines title 'p99'
set title 'writes, ms'
plot samples using 1:9 with lines lw 2 title 'p50', samples using 1:10 with lines title 'p99'
unset multiplot
