#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::plans {
namespace {

constexpr std::string_view kForms = "name,elements,y|n,K[,algorithm] or name,y|n,K";

/// Parses `name,elements,y|n,K[,algorithm]` or the older `name,y|n,K`. The row has a view of
/// `line`.
PlanRow parse_line(std::string_view line, const std::string& default_algorithm) {
  const std::vector<std::string_view> fields = io::split_fields(line);
  if (fields.size() < 3)
    throw io::InputError(fmt::format("a line must be {}, got {}", kForms, io::quote(line)));
  const bool has_elements = fields.size() > 3;
  const std::string_view flag = fields[has_elements ? 2 : 1];
  const std::string_view partitions = fields[has_elements ? 3 : 2];

  PlanRow row;
  row.name = fields[0];
  if (row.name.empty()) throw io::InputError("a gradient's name must not be empty");
  const std::string label = fmt::format("gradient {}: ", io::quote(row.name));
  if (flag != "y" && flag != "n") {
    throw io::InputError(fmt::format("{}compression must be y or n, got {}; a line is {}", label,
                                     io::quote(flag), kForms));
  }
  if (has_elements)
    row.elements = io::parse_integer(fields[1], label + "elements", 1, models::kMaxElements);
  row.partitions = io::parse_integer(partitions, label + "K", 1, kMaxPartitions);
  if (flag == "y") row.algorithm = default_algorithm;
  if (fields.size() > 4) {
    if (flag == "n") {
      throw io::InputError(label +
                           "is not compressed (n) and takes no algorithm; drop it or write y");
    }
    // Takes the rest of the line, since commas may also separate an algorithm's parameters.
    row.algorithm = line.substr(static_cast<std::size_t>(fields[4].data() - line.data()));
    row.algorithm.erase(row.algorithm.find_last_not_of(" \t") + 1);
    if (row.algorithm.empty())
      throw io::InputError(label + "the fifth field, the algorithm, is empty");
  }
  return row;
}

/// True if lines need a fifth field. Without it, readers assume one algorithm of slices for all,
/// but the plan compresses with several algorithms, or sends factors.
bool must_name_algorithms(const models::Model& model, const casync::Plan& plan) {
  std::set<std::int8_t> used;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    const casync::Decision& decision = plan.decisions[g];
    if (!is_raw(model.gradients[g], plan, decision)) used.insert(decision.algorithm);
  }
  return used.size() > 1 || std::any_of(used.begin(), used.end(), [&](std::int8_t algorithm) {
           return is_additive(casync::algorithm_at(plan.algorithms, algorithm));
         });
}

/// True if a line can hold the name. CSV readers would take leading quotes for a quoted field.
bool is_plain(const std::string& name) {
  const std::vector<std::string_view> fields = io::split_fields(name);
  return fields.size() == 1 && fields[0] == name && !name.empty() && name.front() != '"' &&
         io::first_unprintable(name).empty();
}

}  // namespace

void require_text_names(const models::Model& model) {
  for (const models::Gradient& gradient : model.gradients) {
    if (is_plain(gradient.name)) continue;
    throw io::InputError(fmt::format(
        "gradient {} has a comma, a line end, quotes at its beginning or an outer blank "
        "in its name, which a text plan cannot hold; write the plan to a .yaml file",
        io::quote(gradient.name)));
  }
}

ResolvedPlan read_plan_text(const std::string& file, const PlanContext& context) {
  PlanMatcher matcher(file, context);
  int line_number = 0;
  for (const std::string& line : io::read_lines(file)) {
    ++line_number;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    PlanRow row;
    try {
      row = parse_line(line, context.algorithm);
    } catch (const io::InputError& error) {
      throw io::InputError(file, line_number, error.what());
    }
    row.line = line_number;
    matcher.add(row);
  }
  return matcher.take();
}

void write_plan_text(const std::string& path, const models::Model& model,
                     const casync::Plan& plan) {
  require_text_names(model);
  const bool names_algorithms = must_name_algorithms(model, plan);
  io::write_file(path, [&](std::ostream& out) {
    for (std::size_t g = 0; g < model.gradients.size(); ++g) {
      const models::Gradient& gradient = model.gradients[g];
      const casync::Decision& decision = plan.decisions[g];
      const bool raw = is_raw(gradient, plan, decision);
      out << gradient.name << ',' << gradient.elements << (raw ? ",n," : ",y,")
          << decision.partitions;
      if (!raw && names_algorithms) {
        out << ',' << plan.algorithms[static_cast<std::size_t>(decision.algorithm)].name;
      }
      out << '\n';
    }
  });
}

}  // namespace hipress::plans
