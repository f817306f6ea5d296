file(REMOVE_RECURSE
  "CMakeFiles/test_kernels.dir/decode_test.cpp.o"
  "CMakeFiles/test_kernels.dir/decode_test.cpp.o.d"
  "CMakeFiles/test_kernels.dir/draws_test.cpp.o"
  "CMakeFiles/test_kernels.dir/draws_test.cpp.o.d"
  "CMakeFiles/test_kernels.dir/encode_test.cpp.o"
  "CMakeFiles/test_kernels.dir/encode_test.cpp.o.d"
  "CMakeFiles/test_kernels.dir/feedback_test.cpp.o"
  "CMakeFiles/test_kernels.dir/feedback_test.cpp.o.d"
  "CMakeFiles/test_kernels.dir/message_test.cpp.o"
  "CMakeFiles/test_kernels.dir/message_test.cpp.o.d"
  "CMakeFiles/test_kernels.dir/reference.cpp.o"
  "CMakeFiles/test_kernels.dir/reference.cpp.o.d"
  "CMakeFiles/test_kernels.dir/registry_test.cpp.o"
  "CMakeFiles/test_kernels.dir/registry_test.cpp.o.d"
  "CMakeFiles/test_kernels.dir/special_values_test.cpp.o"
  "CMakeFiles/test_kernels.dir/special_values_test.cpp.o.d"
  "CMakeFiles/test_kernels.dir/state_store_test.cpp.o"
  "CMakeFiles/test_kernels.dir/state_store_test.cpp.o.d"
  "test_kernels"
  "test_kernels.pdb"
  "test_kernels_tests-e4c79ce.cmake"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/test_kernels.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()
