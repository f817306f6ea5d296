#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>

#include "io/file.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::kernels::testing {

/// The path of a program of this text. It and what is compiled for it lie in a folder of this
/// build; programs of other texts have other folders, since tests run at the same time.
inline std::string program_file(const std::string& name, const std::string& text) {
  setenv("HIPRESS_CACHE", HIPRESS_TEST_CACHE, 1);
  const std::string folder = std::string(HIPRESS_TEST_CACHE) + "/programs/" + io::fingerprint(text);
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + name + ".pse";
  io::write_file(path, [&](std::ostream& out) { out << text; });
  return path;
}

/// The codec of a program, with parameters "(a=1,b=2)" or none.
inline std::unique_ptr<Codec> compiled(const std::string& name, const std::string& text,
                                       const std::string& parameters = "") {
  return make_codec(program_file(name, text) + parameters);
}

}  // namespace hipress::kernels::testing
