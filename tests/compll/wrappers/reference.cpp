// Writes the results of make_codec() for gradients; tests compare frameworks' operators with them.
//
//   wrapper_reference ALGORITHM SEED NODE GRADIENT-NUMBER ELEMENTS state|none < gradients > results
//
// Step i encodes the i-th ELEMENTS floats of the input. Its results are the message's length in 8
// bytes, the message, the state after it, the decoded values, and the gradient after
// decode-and-add.
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace {

using namespace hipress::kernels;

template <class T>
void write(const T* data, std::size_t count) {
  std::cout.write(reinterpret_cast<const char*>(data),
                  static_cast<std::streamsize>(count * sizeof(T)));
}

bool read(std::vector<float>& values) {
  std::cin.read(reinterpret_cast<char*>(values.data()),
                static_cast<std::streamsize>(values.size() * sizeof(float)));
  return std::cin.gcount() == static_cast<std::streamsize>(values.size() * sizeof(float));
}

void decode(const Codec& codec, const std::vector<std::byte>& message, DecodeMode mode,
            std::vector<float>& values) {
  const std::byte* const start = message.data();
  const auto bytes = static_cast<std::int64_t>(message.size());
  DecodeItem item;
  item.messages = {&start, 1};
  item.message_bytes = {&bytes, 1};
  item.elements = static_cast<std::int64_t>(values.size());
  item.values = values.data();
  item.mode = mode;
  codec.decode({&item, 1});
}

void run_step(const Codec& codec, const DrawKey& key, std::vector<float>& gradient,
              std::vector<float>& state) {
  const auto elements = static_cast<std::int64_t>(gradient.size());
  std::int64_t used = 0;
  std::vector<std::byte> message(static_cast<std::size_t>(codec.encoded_bytes(elements)));
  EncodeItem item;
  item.values = gradient.data();
  item.elements = elements;
  item.state.data = state.empty() ? nullptr : state.data();
  item.state.stride = elements;
  item.message = message.data();
  item.key = key;
  item.message_bytes = &used;
  codec.encode({&item, 1});
  message.resize(static_cast<std::size_t>(used));
  std::vector<float> decoded(gradient.size());
  decode(codec, message, DecodeMode::kOverwrite, decoded);
  decode(codec, message, DecodeMode::kAdd, gradient);
  write(&used, 1);
  write(message.data(), message.size());
  write(state.data(), state.size());
  write(decoded.data(), decoded.size());
  write(gradient.data(), gradient.size());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 7) throw std::invalid_argument("six arguments, please");
  const auto codec = make_codec(argv[1]);
  DrawKey key;
  key.seed = std::stoull(argv[2]);
  key.node = static_cast<std::uint32_t>(std::stoul(argv[3]));
  key.gradient = static_cast<std::uint32_t>(std::stoul(argv[4]));
  std::vector<float> gradient(std::stoul(argv[5]));
  const bool keeps = argv[6] == std::string("state");
  std::vector<float> state(
      keeps ? gradient.size() * static_cast<std::size_t>(codec->traits().state_arrays) : 0);
  if (gradient.empty()) run_step(*codec, key, gradient, state);
  for (; !gradient.empty() && read(gradient); ++key.step) run_step(*codec, key, gradient, state);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
