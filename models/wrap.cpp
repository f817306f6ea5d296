#include "models/wrap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::models {
namespace {

using Names = std::vector<std::string_view>;

Names split(std::string_view text, char separator) {
  Names parts;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// True if a pattern's component matches a name's. The text of the last star grows until the rest
/// fits; earlier stars never need to be reconsidered.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, in_name = 0;
  std::size_t star = std::string_view::npos, behind_star = 0;  // positions for the last star
  while (in_name < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      behind_star = in_name;
    } else if (at < pattern.size() && pattern[at] == name[in_name]) {
      ++at;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

/// Module of a parameter: the first `depth` components of its name.
std::string_view module_of(std::string_view parameter, const Names& components, std::size_t depth) {
  const std::string_view last = components[depth - 1];
  return parameter.substr(0,
                          static_cast<std::size_t>(last.data() - parameter.data()) + last.size());
}

/// Innermost module of a parameter that a pattern matches; empty if there is no match.
std::string_view matched(std::string_view parameter, const std::vector<Names>& patterns) {
  const Names components = split(parameter, '.');
  std::size_t depth = 0;
  for (const Names& pattern : patterns) {
    if (pattern.size() <= depth || pattern.size() >= components.size()) continue;
    if (std::equal(pattern.begin(), pattern.end(), components.begin(), matches)) {
      depth = pattern.size();
    }
  }
  return depth == 0 ? std::string_view() : module_of(parameter, components, depth);
}

void wrap_matches(std::string_view rule, Model& model) {
  constexpr std::ptrdiff_t kMostPatterns = 1000;  // each pattern is compared with every name
  if (std::ranges::count(rule, ',') >= kMostPatterns) {
    throw io::InputError(fmt::format(
        "`wrap` has more than {} patterns; give fewer, with * for any part of a component",
        kMostPatterns));
  }
  std::vector<Names> patterns;
  for (const std::string_view part : split(rule, ',')) {
    const std::string_view pattern = trimmed(part);
    patterns.push_back(split(pattern, '.'));
    if (std::ranges::any_of(patterns.back(), [](std::string_view one) { return one.empty(); })) {
      throw io::InputError(fmt::format(
          "`wrap` must be patterns of module names, such as transformer.h.*, or a number "
          "of elements, such as 100M; got {}",
          io::quote(std::string(rule))));
    }
    const bool known = std::ranges::any_of(model.gradients, [&](const Gradient& gradient) {
      return !matched(gradient.name, {patterns.back()}).empty();
    });
    if (known) continue;
    throw io::InputError(fmt::format(
        "`wrap`: no module is called {}; parameters are called such as {}: give the names of "
        "modules above them, with * for any part of a component",
        io::quote(std::string(pattern)), io::quote(model.gradients.front().name)));
  }
  for (Gradient& gradient : model.gradients) {
    const std::string_view module = matched(gradient.name, patterns);
    gradient.layer = module.empty() ? kRootLayer : module;
  }
}

/// Maximum depth of nested modules.
constexpr std::size_t kMostModules = 1000;

/// Module, derived from the names of parameters.
struct Module {
  std::map<std::string_view, Module> children;
  std::vector<std::size_t> parameters;  ///< own parameters, as indices into the model
  std::int64_t elements = 0;            ///< elements, children included

  bool is_list() const {
    const auto is_number = [](const auto& child) {
      return std::ranges::all_of(child.first, [](char one) { return one >= '0' && one <= '9'; });
    };
    return parameters.empty() && std::ranges::all_of(children, is_number);
  }
};

Module tree_of(const Model& model) {
  Module root;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const Gradient& gradient = model.gradients[g];
    Names components = split(gradient.name, '.');
    components.pop_back();
    if (components.size() > kMostModules) {
      throw io::InputError(
          fmt::format("`wrap`: gradient {} of the model is in {} modules, and a size wraps names "
                      "of at most {}; give patterns",
                      g + 1, components.size(), kMostModules));
    }
    Module* module = &root;
    module->elements += gradient.elements;
    for (const std::string_view component : components) {
      module = &module->children[component];
      module->elements += gradient.elements;
    }
    module->parameters.push_back(g);
  }
  return root;
}

/// Wraps modules by their number of elements.
class SizeRule {
 public:
  SizeRule(std::int64_t least, Model& model) : least_(least), model_(model) {
    for (Gradient& gradient : model_.gradients) gradient.layer.clear();
  }

  void apply() {
    const Module root = tree_of(model_);
    for (const auto& [name, child] : root.children) wrap_in(child, std::string(name));
    if (largest_ < least_) {
      throw io::InputError(
          fmt::format("`wrap` {} elements: no module has that many, the largest that can be "
                      "wrapped has {}; give fewer",
                      least_, largest_));
    }
    for (Gradient& gradient : model_.gradients) {
      if (gradient.layer.empty()) gradient.layer = kRootLayer;
    }
  }

 private:
  /// Wraps within a module; returns the number of its wrapped elements.
  std::int64_t wrap_in(const Module& module, const std::string& name) {
    if (!module.is_list()) largest_ = std::max(largest_, module.elements);
    std::int64_t wrapped = 0;
    for (const auto& [child, inner] : module.children) {
      wrapped += wrap_in(inner, name + "." + std::string(child));
    }
    if (module.is_list() || module.elements - wrapped < least_) return wrapped;
    name_all(module, name);
    return module.elements;
  }

  void name_all(const Module& module, const std::string& name) {
    for (const std::size_t g : module.parameters) {
      if (model_.gradients[g].layer.empty()) model_.gradients[g].layer = name;
    }
    for (const auto& child : module.children) name_all(child.second, name);
  }

  const std::int64_t least_;
  Model& model_;
  std::int64_t largest_ = 0;
};

/// Number of elements of a rule: "100M", "1.5B", "250000".
std::int64_t elements_in(std::string_view rule) {
  constexpr std::string_view kUnits = "kMGB";
  constexpr double kFactors[] = {1e3, 1e6, 1e9, 1e9};
  const std::size_t unit = kUnits.find(rule.back());
  std::string_view digits = rule;
  if (unit != std::string_view::npos) digits.remove_suffix(1);
  const double number = io::parse_number(digits, "`wrap`, a number of elements such as 100M,");
  const double elements = number * (unit == std::string_view::npos ? 1 : kFactors[unit]);
  if (elements >= 1 && elements <= static_cast<double>(kMaxElements)) {
    return static_cast<std::int64_t>(std::llround(elements));
  }
  throw io::InputError(fmt::format("`wrap` must be at least one element and at most {}, got {}",
                                   kMaxElements, io::quote(std::string(rule))));
}

/// True if a rule is a number of elements: it begins like a number, without commas, stars or
/// components.
bool is_size(std::string_view rule) {
  const auto is_digit = [](char one) { return one >= '0' && one <= '9'; };
  if (rule.empty() || !is_digit(rule.front())) return false;
  if (rule.find_first_of(",*") != std::string_view::npos) return false;
  const std::size_t point = rule.find('.');
  return point == std::string_view::npos || (point + 1 < rule.size() && is_digit(rule[point + 1]));
}

}  // namespace

void wrap(std::string_view rule, Model& model) {
  rule = trimmed(rule);
  if (is_size(rule)) {
    return SizeRule(elements_in(rule), model).apply();
  }
  wrap_matches(rule, model);
}

}  // namespace hipress::models
