# CMake generated Testfile for 
# Source directory: /tmp/hk/tests/kernels
# Build directory: /tmp/hk/tests/kernels
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
include("/tmp/hk/tests/kernels/test_kernels_include-e4c79ce.cmake")
