# Hand-written codecs, references for generated ones, are compiled for the building processor.
set_property(SOURCE handwritten/programs.cpp PROPERTY SKIP_PRECOMPILE_HEADERS ON)
set_property(SOURCE handwritten/programs.cpp APPEND PROPERTY COMPILE_OPTIONS -march=native -O3 -ffp-contract=off
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-uninitialized>)
hipress_bench(codecs SOURCES compressors.cpp device_rows.cpp handwritten/programs.cpp
  LIBRARIES hipress::profiler hipress::kernels hipress::io ${CMAKE_DL_LIBS})
