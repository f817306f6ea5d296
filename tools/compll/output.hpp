#pragma once

#include <string>

#include "kernels/compll/compiler.hpp"

/// Output of hipress-compll.
namespace hipress::compll {

/// Options of the command line.
struct Options {
  std::string file;
  std::string target;
  std::string framework;
  std::string folder = ".";
  bool body = false, wrapper = false, registration = false, quiet = false;
};

/// Checks that the options agree with each other, and that the outputs can be written. Throws
/// std::invalid_argument or io::InputError.
void check(const Options& options);

/// Checks that the program fits the options. Throws std::invalid_argument.
void check(const Options& options, const Program& program);

void write_all(const Options& options, const Compiled& compiled);

/// Prints the program's notes, description and use on stderr. Prints nothing with `quiet`.
void say(const Options& options, const Compiled& compiled);

}  // namespace hipress::compll
