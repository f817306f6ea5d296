#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace hipress::tools {

/// Validator of counts and seeds: a decimal integer from `least` to `most`. The option's variable
/// must be able to hold both. Without the validator, CLI11 accepts -1 and numbers of any length for
/// unsigned variables, and reads 010 as 8.
CLI::Validator count_from(std::uint64_t least, std::uint64_t most = UINT64_MAX);

/// Validator of file names, which must not be empty.
CLI::Validator file_name();

/// Validator that accepts only these words.
CLI::Validator word_of(std::vector<std::string> words);

/// Validator of finite real numbers from `least` to `most`. CLI11's own ranges accept nan.
CLI::Validator number_from(double least, double most);

}  // namespace hipress::tools
