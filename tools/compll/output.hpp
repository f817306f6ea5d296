#pragma once

#include <string>

#include "kernels/compll/compiler.hpp"

/// What hipress-compll writes.
namespace hipress::compll {

/// The command line.
struct Options {
  std::string file;
  std::string target;
  std::string framework;
  std::string folder = ".";
  bool body = false, wrapper = false, registration = false;
};

/// Refuses what options say about each other, and outputs that cannot be written:
/// std::invalid_argument, io::InputError.
void check(const Options& options);

/// What the program itself must be for what is asked; std::invalid_argument else.
void check(const Options& options, const Program& program);

/// Writes what is asked for.
void write_all(const Options& options, const Compiled& compiled);

/// Says on stderr what the program is, and how to use it.
void say(const Options& options, const Program& program);

}  // namespace hipress::compll
