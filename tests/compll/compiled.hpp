#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>

#include "io/file.hpp"
#include "kernels/codec.hpp"

namespace hipress::kernels::testing {

/// The codec of a program of this text, with parameters "(a=1,b=2)" or none. What is compiled for
/// it lies in a folder of this build.
inline std::unique_ptr<Codec> compiled(const std::string& name, const std::string& text,
                                       const std::string& parameters = "") {
  setenv("HIPRESS_CACHE", HIPRESS_TEST_CACHE, 1);
  const std::string folder = std::string(HIPRESS_TEST_CACHE) + "/programs";
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + name + ".pse";
  io::write_file(path, [&](std::ostream& out) { out << text; });
  return make_codec(path + parameters);
}

}  // namespace hipress::kernels::testing
