
# Consider dependencies only in project.
set(CMAKE_DEPENDS_IN_PROJECT_ONLY OFF)

# The set of languages for which implicit dependencies are needed:
set(CMAKE_DEPENDS_LANGUAGES
  )

# The set of dependency files which are needed:
set(CMAKE_DEPENDS_DEPENDENCY_FILES
  "/tmp/hk/tests/kernels/decode_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/decode_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/decode_test.cpp.o.d"
  "/tmp/hk/tests/kernels/draws_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/draws_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/draws_test.cpp.o.d"
  "/tmp/hk/tests/kernels/encode_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/encode_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/encode_test.cpp.o.d"
  "/tmp/hk/tests/kernels/feedback_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/feedback_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/feedback_test.cpp.o.d"
  "/tmp/hk/tests/kernels/message_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/message_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/message_test.cpp.o.d"
  "/tmp/hk/tests/kernels/reference.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/reference.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/reference.cpp.o.d"
  "/tmp/hk/tests/kernels/registry_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/registry_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/registry_test.cpp.o.d"
  "/tmp/hk/tests/kernels/special_values_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/special_values_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/special_values_test.cpp.o.d"
  "/tmp/hk/tests/kernels/state_store_test.cpp" "tests/kernels/CMakeFiles/test_kernels.dir/state_store_test.cpp.o" "gcc" "tests/kernels/CMakeFiles/test_kernels.dir/state_store_test.cpp.o.d"
  )

# Targets to which this target links.
set(CMAKE_TARGET_LINKED_INFO_FILES
  "/tmp/hk/tests/CMakeFiles/hipress_test_main.dir/DependInfo.cmake"
  "/tmp/hk/kernels/CMakeFiles/hipress_kernels.dir/DependInfo.cmake"
  "/tmp/hk/io/CMakeFiles/hipress_io.dir/DependInfo.cmake"
  )

# Fortran module output directory.
set(CMAKE_Fortran_TARGET_MODULE_DIR "")
