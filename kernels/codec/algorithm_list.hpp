#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::kernels {

/// Without blanks at either end.
std::string_view trimmed(std::string_view text);

/// Splits a list of algorithms at the commas that are outside parentheses:
/// "tbq(tau=0.25),dgc(rho=0.02,momentum=0.9)" has two algorithms. Whether they can be made is
/// checked by make_codec().
std::vector<std::string> split_algorithms(std::string_view list);

/// An algorithm's name without parameters and outer blanks: "tbq" of " tbq(tau=0.25)".
std::string_view name_of_algorithm(std::string_view text);

/// Where the parameters of "name(parameter=value, …)" begin, with their bracket; npos: there are
/// none. Brackets in the path of a program, x.pse, belong to its name.
std::size_t parameters_at(std::string_view text);

/// The value of a parameter that the text gives: "0.25" of "tbq(tau=0.25)".
std::optional<std::string> parameter_of(std::string_view text, std::string_view name);

/// The text with a parameter set to a value, as the first one, or without it: "tbq(tau=0.5)" of
/// "tbq(tau=0.25)", "tau" and "0.5". Whether there is such a parameter is make_codec's business.
std::string with_parameter(std::string_view text, std::string_view name,
                           const std::optional<std::string>& value);

/// The parameter of sparsifiers that says which share of a slice's entries they send.
inline constexpr std::string_view kDensity = "rho";

/// The file of the CompLL program that an algorithm's text names ("x.pse" of "x.pse(rho=0.1)");
/// none if it names something else.
std::optional<std::string> program_file(std::string_view text);

}  // namespace hipress::kernels
