#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>

#include "io/file.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::kernels::testing {

/// Writes a program to a file, and returns its path. The program and its compiled code lie in a
/// folder of this build. Each text has its own folder, because tests run at the same time.
inline std::string program_file(const std::string& name, const std::string& text) {
  setenv("HIPRESS_CACHE", HIPRESS_TEST_CACHE, 1);
  const std::string folder = std::string(HIPRESS_TEST_CACHE) + "/programs/" + io::fingerprint(text);
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + name + ".pse";
  io::write_file(path, [&](std::ostream& out) { out << text; });
  return path;
}

/// Codec of a program, with `parameters` such as "(a=1,b=2)".
inline std::unique_ptr<Codec> compiled(const std::string& name, const std::string& text,
                                       const std::string& parameters = "") {
  return make_codec(program_file(name, text) + parameters);
}

}  // namespace hipress::kernels::testing
