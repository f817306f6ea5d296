# Hand-written codecs, to hold generated ones against: for the processor that builds them.
set_property(SOURCE handwritten/programs.cpp PROPERTY SKIP_PRECOMPILE_HEADERS ON)
set_property(SOURCE handwritten/programs.cpp APPEND PROPERTY COMPILE_OPTIONS -march=native -O3 -ffp-contract=off
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-uninitialized>)
hipress_bench(codecs SOURCES compressors.cpp device_rows.cpp handwritten/programs.cpp
  LIBRARIES hipress::profiler hipress::kernels hipress::io ${CMAKE_DL_LIBS})
