// Fuzzes the compiler with libFuzzer: any text must give an error or code, never a crash.
//
//   build/fuzz/tests/compll/fuzz_compll -max_total_time=600 CORPUS kernels/algorithms
//   tests/compll/data

#include "tests/compll/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  hipress::compll::complaint(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
