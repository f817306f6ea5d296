// Fuzzes decoding with damaged messages: a decode must throw, or write nothing but its values.
//
//   build/fuzz/tests/kernels/fuzz_decode -max_total_time=600 -max_len=4096

#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "kernels/frames/compiled_algorithm.hpp"
#include "kernels/host/codec.hpp"

// An array program, tests/compll/data/Misc.pse, that is compiled with this test.
extern "C" const hipress::kernels::CompiledAlgorithm hipress_misc_scalar;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace hipress::kernels;
  if (size < 4) return 0;
  static const std::vector<std::unique_ptr<Codec>> codecs = [] {
    std::vector<std::unique_ptr<Codec>> made;
    for (const AlgorithmRow& row : algorithms()) {
      if (row.additive) continue;  // no encode(); see lowrank_test.cpp
      made.push_back(make_codec(row.name));
    }
    made.push_back(make_codec("terngrad(b=8)"));
    made.push_back(make_codec("graddrop(rho=0.2)"));
    made.push_back(make_codec("graddrop(rho=0.2,packing=1)"));
    made.push_back(make_codec("dgc(rho=0.1,packing=2)"));
    made.push_back(make_codec("int8block(block=96,rotate=1)"));
    made.push_back(make_codec("int4block(block=32,rotate=1)"));
    made.push_back(make_codec("fp4block(format=e2m1,rotate=1)"));
    const double rho = 0.1;
    made.push_back(make_host_algorithm(hipress_misc_scalar, &rho, Isa::kScalar));
    return made;
  }();
  const Codec& codec = *codecs[data[0] % codecs.size()];
  const std::int64_t elements = data[1] + 256 * (data[2] % 8);
  const bool adds = data[3] % 2 != 0;
  // Values with few exponents, which `lossless` codes from about 600 elements (raw below).
  std::vector<float> values(static_cast<std::size_t>(elements), 0.5f);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = static_cast<float>(i % 50);
  const auto most = static_cast<std::size_t>(codec.encoded_bytes(elements));
  const std::size_t given = size - 4;
  // Memory of exactly `count` bytes, so that the address sanitizer detects reads past the end.
  struct Aligned {
    explicit Aligned(std::size_t count)
        : data(static_cast<std::byte*>(::operator new (count, std::align_val_t{16}))) {}
    ~Aligned() { ::operator delete (data, std::align_val_t{16}); }
    std::byte* data;
  };
  const Aligned whole(most + 16);
  EncodeItem item;
  item.values = values.data();
  item.elements = elements;
  item.message = whole.data;
  std::int64_t used = 0;
  item.message_bytes = &used;
  codec.encode({&item, 1});
  const auto right = static_cast<std::size_t>(used);
  // An encode's message with its first bytes replaced by the fuzzer's, or the fuzzer's alone.
  const std::size_t bytes = data[3] % 4 < 2 ? right : given;
  const Aligned message(bytes);
  std::memcpy(message.data, whole.data, std::min(bytes, right));
  if (bytes > right) std::memset(message.data + right, 0, bytes - right);
  std::memcpy(message.data, data + 4, std::min(bytes, given));
  const std::byte* const messages[] = {message.data};
  const auto length = static_cast<std::int64_t>(bytes);
  DecodeItem out;
  out.messages = messages;
  out.message_bytes = {&length, 1};
  out.elements = elements;
  out.values = values.data();
  out.mode = adds ? DecodeMode::kAdd : DecodeMode::kOverwrite;
  try {
    codec.decode({&out, 1});
  } catch (const std::runtime_error&) {
  }
  return 0;
}
