#include "tools/options/fields.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "io/spelling.hpp"
#include "requests/headings.hpp"
#include "tools/validators.hpp"

namespace hipress::tools {
namespace {

std::string option_name(const requests::Field& field) {
  std::string name = "--" + field.name;
  std::ranges::replace(name, '_', '-');
  return name;
}

/// Adds the option of a field. Booleans, and numbers that may be given without a value, are flags.
CLI::Option* add(CLI::App& app, const requests::Field& field, const std::string& name) {
  const std::string help = io::as_command_line(field.help);
  return std::visit(
      [&](auto* to) -> CLI::Option* {
        using T = std::remove_pointer_t<decltype(to)>;
        if constexpr (std::is_same_v<T, bool>) return app.add_flag(name, *to, help);
        if constexpr (std::is_same_v<T, std::int32_t>) {
          if (field.bare) return app.add_flag(name + "{" + *field.bare + "}", *to, help);
        }
        if constexpr (std::is_same_v<T, io::Document>) {
          throw std::logic_error(field.name + " is a document, for which there is no option");
        } else {
          CLI::Option* const option = app.add_option(name, *to, help);
          if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
            option->delimiter(',')->allow_extra_args(false);
          }
          return option;
        }
      },
      field.to);
}

}  // namespace

CLI::Option& bind(CLI::App& app, const requests::Field& field, std::string name) {
  CLI::Option* option = add(app, field, name.empty() ? option_name(field) : std::move(name));
  if (const auto* bounds = std::get_if<requests::Bounds>(&field.bounds)) {
    option->check(count_from(bounds->least, bounds->most));
  }
  if (const auto* bounds = std::get_if<requests::NumberBounds>(&field.bounds)) {
    option->check(number_from(bounds->least, bounds->most));
  }
  if (!field.words.empty()) option->check(word_of(field.words));
  if (field.is_file) option->check(file_name());
  if (field.bare && std::holds_alternative<std::string*>(field.to)) {
    option->expected(0, 1)->default_str(*field.bare);
  }
  if (field.repeats) option->allow_extra_args(false);
  if (field.shows_default) option->capture_default_str();
  if (field.required) option->required();
  if (!field.group.empty()) option->group(field.group);
  if (field.given != nullptr)
    option->each([field](const std::string& value) { field.note(value); });
  return *option;
}

void bind(CLI::App& app, const requests::Fields& fields) {
  for (const requests::Field& field : fields) bind(app, field);
}

void declare_json(CLI::App& app, bool& json, std::string help) {
  app.add_flag("--json", json, std::move(help))->group(std::string(requests::headings::kOutput));
}

}  // namespace hipress::tools
