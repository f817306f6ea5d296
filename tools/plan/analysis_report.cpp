#include "tools/plan/analysis_report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>

#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "planner/analysis/worth.hpp"

namespace hipress::planner {
namespace {

constexpr std::size_t kManyRows = 40;  // longer tables follow a summary

/// Time with its sign: "+1.2ms", "-30us".
std::string difference(double seconds) {
  return (seconds > 0 ? "+" : "-") + io::format_duration(std::abs(seconds), 3);
}

std::string percent(double value, double of) {
  return of > 0 ? fmt::format("{:+.1f} %", 100 * (value / of - 1)) : "";
}

/// Width of a column: the length of its longest text or of `title`, whichever is larger.
template <class Rows, class Text>
std::size_t width_of(std::string_view title, const Rows& rows, const Text& text) {
  std::size_t width = title.size();
  for (const auto& row : rows) width = std::max(width, std::string(text(row)).size());
  return width;
}

// ---- passes ----

void print_passes_run(std::ostream& out, const Analysis& analysis) {
  for (const PassReport& pass : analysis.passes) {
    if (!pass.changed) continue;
    fmt::print(out, "  pass {}: {} -> {}, in {}\n", pass.name,
               io::format_duration(pass.iteration_before_s),
               io::format_duration(pass.iteration_after_s), io::format_duration(pass.seconds, 2));
  }
}

// ---- robust ----

void print_robust(std::ostream& out, const RobustChoice& choice) {
  fmt::print(out, "\niteration under uncertainty, best 90th percentile first:\n");
  std::vector<const RobustCandidate*> order;
  for (const RobustCandidate& candidate : choice.candidates) order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(-static_cast<std::int64_t>(a->spread.replicas), a->spread.p90_s) <
           std::pair(-static_cast<std::int64_t>(b->spread.replicas), b->spread.p90_s);
  });
  const std::size_t width = width_of("plan", order, [](const auto* c) { return c->name; });
  fmt::print(out, "  {:<{}}{:>10}{:>12}{:>12}{:>12}\n", "plan", width, "replicas", "mean", "p50",
             "p90");
  for (const RobustCandidate* candidate : order) {
    const ReplicaTimes& spread = candidate->spread;
    fmt::print(out, "  {:<{}}{:>10}{:>12}{:>12}{:>12}{}\n", candidate->name, width, spread.replicas,
               io::format_duration(spread.mean_s), io::format_duration(spread.p50_s),
               io::format_duration(spread.p90_s),
               candidate == &choice.candidates[choice.best] ? "  chosen" : "");
  }
}

// ---- explanation ----

/// Options with their counts: "9 × onebit, K = 16; 3 × raw, K = 1".
std::string describe_options(const SizeClass& size) {
  std::string text;
  for (const auto& [option, count] : size.options) {
    text += fmt::format("{}{} × {}", text.empty() ? "" : "; ", count, option);
  }
  return text;
}

void print_classes(std::ostream& out, const std::vector<SizeClass>& classes) {
  fmt::print(out, "\n  {:>12}{:>8}{:>10}{:>8}  options\n", "elements", "count", "critical",
             "hidden");
  for (const SizeClass& size : classes) {
    fmt::print(out, "  {:>12}{:>8}{:>10}{:>8}  {}\n", size.elements, size.count, size.critical,
               size.hidden, describe_options(size));
  }
}

/// Explains why a decision's worth, the time that it saves, can be negative.
void print_why_negative(std::ostream& out, bool estimated) {
  fmt::print(
      out,
      "  Negative: the iteration would be shorter with it. The search is a heuristic, which "
      "does not try every change{}.\n",
      estimated ? "; these differences were simulated on network port, which chooses no plan" : "");
}

void print_explanation(std::ostream& out, const models::Model& model,
                       const Explanation& explanation) {
  fmt::print(out, "\nmemory per node: residuals {}, message buffers {}\n",
             io::format_amount(explanation.memory.residual_bytes),
             io::format_amount(explanation.memory.buffer_bytes));
  fmt::print(out, "reasons, the most valuable decisions first{}:\n",
             explanation.estimated ? " (costs of runner-ups are from network port)" : "");
  if (explanation.rows.size() > kManyRows) print_classes(out, explanation.classes);
  const auto rows = by_worth(explanation.rows, &GradientRow::runner_up_cost_s);
  const auto name = [&](const GradientRow* row) { return model.gradients[row->gradient].name; };
  const auto other = [](const GradientRow* row) { return row->runner_up.value_or("none"); };
  const auto option = [](const GradientRow* row) { return row->option; };
  const std::size_t names = width_of("gradient", rows, name) + 1;
  const std::size_t options = width_of("option", rows, option) + 2;
  const std::size_t others = width_of("runner-up", rows, other) + 1;
  if (!rows.empty()) {
    fmt::print(out, "\n  {:<{}}{:>11}{:>11}{:>11}  {:<{}}{:<{}}{:>10}  why\n", "gradient", names,
               "elements", "ready", "done", "option", options, "runner-up", others, "it costs");
  }
  for (const GradientRow* row : rows) {
    const std::string cost = row->runner_up_cost_s ? difference(*row->runner_up_cost_s)
                             : row->runner_up      ? "unknown"
                                                   : "";
    fmt::print(out, "  {:<{}}{:>11}{:>11}{:>11}  {:<{}}{:<{}}{:>10}  {}\n", name(row), names,
               model.gradients[row->gradient].elements, io::format_duration(row->ready_s),
               io::format_duration(row->done_s), row->option, options, other(row), others, cost,
               row->why());
  }
  if (const std::size_t left = explanation.rows.size() - rows.size(); left > 0) {
    fmt::print(out, "  {}{} gradient{} with a runner-up that would take as long\n", left,
               rows.empty() ? "" : " more", left == 1 ? "" : "s");
  }
  if (has_negative(explanation.rows, &GradientRow::runner_up_cost_s)) {
    print_why_negative(out, explanation.estimated);
  }
}

// ---- comparison ----

struct Figure {
  std::string_view name;
  std::string (*say)(const PlanFigures& figures);
  double (*value)(const PlanFigures& figures);
};
constexpr Figure kFigures[] = {
    {"iteration", [](const PlanFigures& f) { return io::format_duration(f.iteration_s); },
     [](const PlanFigures& f) { return f.iteration_s; }},
    {"exposed communication", [](const PlanFigures& f) { return io::format_duration(f.exposed_s); },
     [](const PlanFigures& f) { return f.exposed_s; }},
    {"sent per node", [](const PlanFigures& f) { return io::format_amount(f.bytes_per_node); },
     [](const PlanFigures& f) { return static_cast<double>(f.bytes_per_node); }},
    {"compressed gradients", [](const PlanFigures& f) { return std::to_string(f.compressed); },
     [](const PlanFigures& f) { return static_cast<double>(f.compressed); }},
    {"residuals per node",
     [](const PlanFigures& f) { return io::format_amount(f.memory.residual_bytes); },
     [](const PlanFigures& f) { return static_cast<double>(f.memory.residual_bytes); }},
    {"message buffers per node",
     [](const PlanFigures& f) { return io::format_amount(f.memory.buffer_bytes); },
     [](const PlanFigures& f) { return static_cast<double>(f.memory.buffer_bytes); }},
};

void print_comparison(std::ostream& out, const std::string& first, const std::string& second,
                      const PlanComparison& comparison) {
  fmt::print(out, "\n{:<26}{:>20}{:>20}{:>12}\n", "", first, second, "change");
  for (const Figure& figure : kFigures) {
    fmt::print(out, "{:<26}{:>20}{:>20}{:>12}\n", figure.name, figure.say(comparison.first),
               figure.say(comparison.second),
               percent(figure.value(comparison.second), figure.value(comparison.first)));
  }
  if (comparison.differences.empty()) {
    fmt::print(out, "\nthe plans are alike\n");
    return;
  }
  const auto rows = by_worth(comparison.differences, &Difference::alone_s);
  fmt::print(out, "\n{} differences; time that each alone would add to the iteration of {}{}:\n",
             comparison.differences.size(), first,
             comparison.estimated ? " (gradients: on network port)" : "");
  const std::size_t what =
      width_of("difference", rows, [](const Difference* d) { return d->what; }) + 2;
  const std::size_t from = width_of(first, rows, [](const Difference* d) { return d->first; }) + 2;
  const std::size_t to = width_of(second, rows, [](const Difference* d) { return d->second; }) + 1;
  if (!rows.empty()) {
    fmt::print(out, "  {:<{}}{:<{}}{:<{}}{:>10}\n", "difference", what, first, from, second, to,
               "alone");
  }
  for (const Difference* row : rows) {
    fmt::print(out, "  {:<{}}{:<{}}{:<{}}{:>10}\n", row->what, what, row->first, from, row->second,
               to, row->alone_s ? difference(*row->alone_s) : "unknown");
  }
  if (const std::size_t left = comparison.differences.size() - rows.size(); left > 0) {
    fmt::print(out, "  {}{} that alone change{} nothing\n", left, rows.empty() ? "" : " more",
               left == 1 ? "s" : "");
  }
  if (has_negative(comparison.differences, &Difference::alone_s)) {
    print_why_negative(out, comparison.estimated);
  }
}

}  // namespace

void print_analysis(std::ostream& out, const AnalysisOptions& options, const Problem& problem,
                    const Analysis& analysis) {
  print_passes_run(out, analysis);
  if (const auto& dense = analysis.dense) {
    fmt::print(out, "above density {:.3g}, {} in {} partitions is faster (try it with {})\n",
               dense->above, dense->algorithm == "none" ? "raw" : dense->algorithm,
               dense->partitions, "hipress-sim --density");
  }
  if (analysis.robust) print_robust(out, *analysis.robust);
  if (analysis.explanation) print_explanation(out, problem.model, *analysis.explanation);
  if (analysis.comparison) {
    print_comparison(out, options.plan.empty() ? "this plan" : options.plan, options.compare,
                     *analysis.comparison);
  }
}

void print_passes(std::ostream& out) {
  for (const Pass& pass : passes())
    fmt::print(out, "{:<20}{}\n", pass.name, io::as_command_line(pass.help));
}

void print_break_even(std::ostream& out, const BreakEvenPoint& point, double tolerance) {
  const QuantityRow& quantity = *point.quantity;
  fmt::print(out, "\nbreak-even over {}, with a plan for each (given: {}):\n", quantity.words,
             quantity.text(point.given));
  for (const std::string& sentence : describe(point, tolerance)) {
    fmt::print(out, "  {}\n", sentence);
  }
  if (point.curve.empty()) return;
  fmt::print(out, "  {:>16}{:>14}{:>14}   speed-up (in 8 runs of 10)\n", quantity.words,
             "compressed", "without");
  for (const Elsewhere& at : point.curve) {
    const sim::Saving& saving = *at.saving;
    fmt::print(out, "  {:>16}{:>14}{:>14}   {:.2f} ({:.2f} to {:.2f})  {}\n",
               quantity.text(at.value), io::format_duration(*at.compressed_s),
               io::format_duration(*at.uncompressed_s), 1 / (1 - saving.median),
               1 / (1 - saving.p10), 1 / (1 - saving.p90), to_string(at.answer));
  }
}

void print_in_words(std::ostream& out, const std::vector<std::string>& sentences) {
  fmt::print(out, "\nin words:\n");
  if (sentences.empty()) fmt::print(out, "  nothing was simulated, so there is no advice\n");
  for (const std::string& sentence : sentences) {
    fmt::print(out, "  - {}\n", io::as_command_line(sentence));
  }
}

}  // namespace hipress::planner
