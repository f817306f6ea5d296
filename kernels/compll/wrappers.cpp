#include "kernels/compll/wrappers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/utf8.hpp"
#include "kernels/compll/emit.hpp"

namespace hipress::compll {

namespace {

/// One row per framework. Its template, wrappers/NAME.cpp, is C++ with $placeholders (or
/// ${placeholders}), in three sections: head, wrapper and registration. `declare` formats a
/// parameter's declaration for the framework; `with` is the parameter's default, or empty.
struct Framework {
  std::string_view name;
  std::string (*declare)(const ProgramParameter& parameter, const std::string& with);
};

bool is_real(const ProgramParameter& parameter) { return parameter.kind == ScalarKind::kFloat; }

std::string declare_for_pytorch(const ProgramParameter& p, const std::string& with) {
  return fmt::format(", {} {}{}{}", is_real(p) ? "float" : "int", p.name, with.empty() ? "" : "=",
                     with);
}

std::string declare_for_tensorflow(const ProgramParameter& p, const std::string& with) {
  return fmt::format("\n    .Attr(\"{}: {}{}{}\")", p.name, is_real(p) ? "float" : "int",
                     with.empty() ? "" : " = ", with);
}

/// MXNet's operators take any attribute and look it up by name.
std::string declare_for_mxnet(const ProgramParameter& p, const std::string& /*with*/) {
  return fmt::format(" \"{}\",", p.name);
}

constexpr Framework kFrameworks[] = {
    {"pytorch", declare_for_pytorch},
    {"tensorflow", declare_for_tensorflow},
    {"mxnet", declare_for_mxnet},
};

/// Names that parameters cannot have: those of the operators' arguments, of arguments that
/// frameworks add, and of results, because TensorFlow has one namespace for arguments and results.
const std::set<std::string_view> kTaken = {
    "gradient", "state",    "seed",   "step",      "node", "gradient_number",
    "message",  "elements", "values", "new_state", "sum",  "name",
    "out",      "self",     "ctx",    "feedback"};

/// Keywords of Python and of PyTorch's schemas. A library with such an argument name cannot be
/// loaded.
const std::set<std::string_view> kPython = {
    "Ellipsis", "False",  "None",    "NoneType", "True",     "and",    "as",       "assert",
    "async",    "await",  "break",   "class",    "continue", "def",    "del",      "elif",
    "else",     "except", "finally", "for",      "from",     "global", "if",       "import",
    "in",       "inf",    "is",      "lambda",   "nan",      "not",    "nonlocal", "or",
    "pass",     "raise",  "return",  "try",      "while",    "with",   "yield"};

const Framework& find(const std::string& name) {
  for (const Framework& framework : kFrameworks) {
    if (framework.name == name) return framework;
  }
  throw std::invalid_argument(fmt::format("no framework is called '{}'; there are {}", name,
                                          fmt::join(framework_names(), ", ")));
}

void check(const Program& program, const std::string& origin) {
  if (!program.decoder) {
    throw io::InputError(origin, 0,
                         "an operator needs the decoder too; put it into this file, or into one "
                         "called …Decode.pse beside …Encode.pse");
  }
  for (const ProgramParameter& parameter : program.parameters) {
    if (kTaken.contains(parameter.name) || kPython.contains(parameter.name) ||
        !std::isalpha(static_cast<unsigned char>(parameter.name[0]))) {
      throw io::InputError(
          origin, 0,
          fmt::format("an operator cannot have a parameter called '{}'; rename it: names begin "
                      "with a letter and are neither words of Python nor {}",
                      parameter.name, fmt::join(kTaken, ", ")));
    }
  }
}

/// Throws io::InputError if a file name would end the #include that contains it.
void require_includable(const std::string& header, const std::string& origin) {
  if (header.find_first_of("\"\\") == std::string::npos && io::printable(header) == header) return;
  throw io::InputError(io::printable(origin), 0,
                       "registration alone includes a header of the program's name, which cannot "
                       "have quotation marks, backslashes or control characters; rename the "
                       "program, or give -w -r together");
}

/// Formats a default for Python and C++: "0.5", "1e-30", "2".
std::string default_of(const ProgramParameter& parameter) {
  if (!parameter.value) return "";
  const std::string text = fmt::format("{}", *parameter.value);
  const bool plain = text.find_first_not_of("-0123456789") == std::string::npos;
  return is_real(parameter) && plain ? text + ".0" : text;
}

using Placeholders = std::map<std::string, std::string, std::less<>>;

Placeholders placeholders(const Compiled& compiled, const Framework& framework,
                          const std::string& header) {
  const Program& program = compiled.program;
  const std::string name = export_name(program);
  std::string capital = name;
  capital[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(capital[0])));
  std::string arguments, values, declared;
  for (const ProgramParameter& p : program.parameters) {
    // Names have a prefix, as in the body, because programs may use C++ keywords.
    arguments += fmt::format(", {} parameter_{}", is_real(p) ? "double" : "std::int64_t", p.name);
    values += values.empty() ? "" : ", ";
    values += is_real(p) ? fmt::format("parameter_{}", p.name)
                         : fmt::format("static_cast<double>(parameter_{})", p.name);
    declared += framework.declare(p, default_of(p));
  }
  return {{"Name", capital},        {"name", name},
          {"arguments", arguments},  // further arguments of a C++ function
          {"body", compiled.code},  {"declared", declared},
          {"header", header},       {"star", declared.empty() ? "" : ", *"},
          {"values", values}};
}

std::string filled(std::string_view text, const Placeholders& placeholders) {
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const bool braces = text.starts_with('{');
    if (braces) text.remove_prefix(1);
    const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
    const auto end = std::find_if_not(text.begin(), text.end(), is_letter);
    const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    const auto found = placeholders.find(word);
    if (found == placeholders.end()) {
      throw std::logic_error(fmt::format("a template has a placeholder ${}", word));
    }
    result += found->second;
    text.remove_prefix(word.size() + (braces ? 1 : 0));
  }
  return result;
}

/// Text between two lines of a template, excluding both.
std::string_view between(std::string_view text, std::string_view first, std::string_view last) {
  const std::size_t begin = text.find(first);
  const std::size_t end = text.find(last);
  if (begin == std::string_view::npos || end == std::string_view::npos) {
    throw std::logic_error(fmt::format("a template lacks '{}' or '{}'", first, last));
  }
  return text.substr(begin + first.size(), end - begin - first.size());
}

}  // namespace

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const Framework& framework : kFrameworks) names.emplace_back(framework.name);
  return names;
}

std::string wrapper_file(const std::string& stem, const std::string& framework, WrapperPart part) {
  return fmt::format("{}_{}.{}", stem, framework, part == WrapperPart::kWrapper ? "hpp" : "cpp");
}

std::string wrap(const Compiled& compiled, const std::string& origin, const std::string& stem,
                 const std::string& framework, WrapperPart part) {
  const Framework& row = find(framework);
  check(compiled.program, origin);
  const std::string text =
      io::read_file(io::data_file(fmt::format("kernels/compll/wrappers/{}.cpp", framework)));
  constexpr std::string_view kWrapperLine = "// ---- wrapper ----\n";
  constexpr std::string_view kRegistrationLine = "// ---- registration ----\n";
  const std::string head(between(text, "", kWrapperLine));
  const std::string wrapper(between(text, kWrapperLine, kRegistrationLine));
  const std::string registration =
      text.substr(text.find(kRegistrationLine) + kRegistrationLine.size());
  const std::string header = wrapper_file(stem, framework, WrapperPart::kWrapper);
  if (part == WrapperPart::kRegistration) require_includable(header, origin);
  std::string whole;
  switch (part) {
    case WrapperPart::kWrapper:
      whole = "#pragma once\n" + head + wrapper;
      break;
    case WrapperPart::kRegistration:
      whole =
          "// Generated by hipress-compll: registers what the header holds. Do not edit.\n"
          "#include \"$header\"\n\n" +
          registration;
      break;
    case WrapperPart::kBoth:
      whole = head + wrapper + registration;
      break;
  }
  return filled(whole, placeholders(compiled, row, header));
}

}  // namespace hipress::compll
