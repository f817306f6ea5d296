#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace hipress::tools {

/// For ->check() of an option that takes a count or a seed: a whole decimal number from `least` to
/// `most`; its variable must be able to hold both. Without this check, CLI11 accepts -1 and numbers
/// of any length for unsigned variables, and reads 010 as 8.
CLI::Validator count_from(std::uint64_t least, std::uint64_t most = UINT64_MAX);

/// For ->check() of an option that takes the name of a file: it is not empty.
CLI::Validator file_name();

/// For ->check() of an option that takes one of these words.
CLI::Validator word_of(std::vector<std::string> words);

/// For ->check() of an option that takes a real number: it must be finite, and from `least` to
/// `most`. CLI11's own ranges take nan for a number within them.
CLI::Validator number_from(double least, double most);

}  // namespace hipress::tools
