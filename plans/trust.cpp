#include "plans/trust.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "io/error.hpp"
#include "kernels/codec/algorithm_list.hpp"

namespace hipress::plans {
namespace fs = std::filesystem;
namespace {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error_a, error_b;
  const fs::path real_a = fs::canonical(a, error_a);
  const fs::path real_b = fs::canonical(b, error_b);
  return !error_a && !error_b && real_a == real_b;
}

}  // namespace

std::string trusted_algorithm(const std::string& text, const Trust& trust) {
  const std::optional<std::string> program = kernels::program_file(text);
  if (!program || trust.everything) return text;
  for (const std::string& algorithm : trust.named) {
    const std::optional<std::string> named = kernels::program_file(algorithm);
    if (!named || !same_file(*program, *named)) continue;
    const std::size_t parameters = kernels::parameters_at(text);
    return *named + (parameters == std::string::npos ? "" : text.substr(parameters));
  }
  throw io::InputError(fmt::format(
      "it brings the program {}, which would be compiled and run as you; name the program on the "
      "command line too (`algorithm` {}), or give `trust_plan` if you trust all that the file "
      "brings",
      io::quote(*program), io::quote(*program)));
}

}  // namespace hipress::plans
