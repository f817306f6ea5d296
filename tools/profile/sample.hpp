#pragma once

#include <string>
#include <vector>

#include "costs/profile.hpp"
#include "tools/profile/options.hpp"

namespace hipress::profiler {

/// Whether the length of its messages varies with the data.
bool is_lossless(const std::string& algorithm);

/// The numbers of a sample; none without one. io::InputError for a file that holds none.
std::vector<float> read_sample(const std::string& path);

/// Puts what the sample comes to into every row of an algorithm whose messages vary. io::InputError
/// if there is none.
void apply_sample(const std::vector<float>& values, costs::Profile& profile);

/// One number of a profile is replaced, so nothing is measured. Returns the exit status.
int run_sample(const CommandLine& line, const std::vector<float>& sample);

}  // namespace hipress::profiler
