# Eigen's products, with which ours are compared, are compiled for the building processor.
set_property(SOURCE bench_lowrank.cpp PROPERTY SKIP_PRECOMPILE_HEADERS ON)
set_property(SOURCE bench_lowrank.cpp APPEND PROPERTY COMPILE_OPTIONS -march=native -O3
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-uninitialized>)
hipress_bench(lowrank LIBRARIES hipress::kernels hipress::io Eigen3::Eigen)
