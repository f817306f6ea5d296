#include "tools/profile/sample.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/sample.hpp"

namespace hipress::profiler {

bool is_lossless(const std::string& algorithm) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  return row != nullptr && row->lossless;
}

std::vector<float> read_sample(const std::string& path) {
  if (path.empty()) return {};
  const std::string bytes = io::read_file(path);
  if (bytes.empty() || bytes.size() % sizeof(float) != 0) {
    throw io::InputError(path, 0,
                         fmt::format("has {} bytes; a sample is fp32 numbers as they lie in "
                                     "memory, 4 bytes each, as numpy's tensor.tofile writes them",
                                     bytes.size()));
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void apply_sample(const std::vector<float>& values, costs::Profile& profile) {
  bool found = false;
  for (auto& [name, costs] : profile.codecs) {
    if (!is_lossless(name)) continue;
    costs.message_share = message_share(*kernels::make_codec(name), values);
    fmt::print(stderr, "{}: messages come to {:.1f} % of the longest\n", name,
               100 * costs.message_share);
    found = true;
  }
  if (found) return;
  throw io::InputError(
      "--sample: the profile has no algorithm whose messages vary with the data; measure one: "
      "--algorithm lossless");
}

int run_sample(const CommandLine& line, const std::vector<float>& sample) {
  costs::Profile profile = costs::read_profile(line.base);
  apply_sample(sample, profile);
  costs::write_profile(line.output, profile);
  fmt::print("written to {}\n", line.output);
  return 0;
}

}  // namespace hipress::profiler
