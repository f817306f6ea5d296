#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::kernels {

/// Text without leading and trailing blanks.
std::string_view trimmed(std::string_view text);

/// Splits a list of algorithms at the commas outside parentheses:
/// "tbq(tau=0.25),dgc(rho=0.02,momentum=0.9)" has two algorithms. Does not check them; make_codec()
/// does.
std::vector<std::string> split_algorithms(std::string_view list);

/// Name of an algorithm without parameters and outer blanks: "tbq" for " tbq(tau=0.25)".
std::string_view name_of_algorithm(std::string_view text);

/// Position of the bracket that opens the parameters in "name(parameter=value, …)"; npos if there
/// are none. Brackets in the path of a program, x.pse, belong to its name.
std::size_t parameters_at(std::string_view text);

/// Value of a parameter in the text, if given: "0.25" for "tbq(tau=0.25)" and "tau".
std::optional<std::string> parameter_of(std::string_view text, std::string_view name);

/// Sets a parameter, which becomes the first, or removes it if `value` is empty: "tbq(tau=0.5)" for
/// "tbq(tau=0.25)", "tau" and "0.5". Does not check that it exists; make_codec() does.
std::string with_parameter(std::string_view text, std::string_view name,
                           const std::optional<std::string>& value);

/// Name of sparsifiers' density parameter: the share of a slice's entries that they send.
inline constexpr std::string_view kDensity = "rho";

/// Path of the CompLL program that an algorithm's text names: "x.pse" for "x.pse(rho=0.1)". Empty
/// if it names no program.
std::optional<std::string> program_file(std::string_view text);

}  // namespace hipress::kernels
