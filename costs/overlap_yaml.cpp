#include "costs/overlap_yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::costs {
namespace {

constexpr std::string_view kClasses = "classes", kCodecBeside = "codec_beside_transfer",
                           kTransferBeside = "transfer_beside_codec";
constexpr std::string_view kRemedy =
    "hipress-profile measures a whole matrix; without one, give the constants compute_codec, "
    "compute_transfer and codec_transfer instead";

double factor(const io::YamlNode& node) {
  return node.number(1, kMaxOverlap, "1: no slower together, 8: 8 times as long");
}

double entry(const io::YamlNode& node, std::string_view key) {
  if (const auto found = node.find(key)) return factor(*found);
  node.fail(fmt::format("the matrix has no '{}'; {}", key, kRemedy));
}

void expect_classes(const io::YamlNode& node) {
  const auto names = models::compute_class_names();
  for (const auto& [name, row] : node.entries()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    row.fail(fmt::format("unknown class of computation {}{}", io::quote(name),
                         io::suggestion(name, names)));
  }
}

ClassOverlap read_class(const io::YamlNode& node) {
  node.expect_keys({kClassOverlapKeys[0].name, kClassOverlapKeys[1].name, kClassOverlapKeys[2].name,
                    kClassOverlapKeys[3].name});
  ClassOverlap row;
  for (const ClassOverlapKey& key : kClassOverlapKeys) row.*key.factor = entry(node, key.name);
  return row;
}

OverlapMatrix read_matrix(const io::YamlNode& node) {
  for (const OverlapConstant& constant : kOverlapConstants) {
    if (const auto given = node.find(constant.name)) {
      given->fail(fmt::format("a matrix has no constants: leave it out, or {}, {} and {}", kClasses,
                              kCodecBeside, kTransferBeside));
    }
  }
  OverlapMatrix matrix{.codec_beside_transfer = entry(node, kCodecBeside),
                       .transfer_beside_codec = entry(node, kTransferBeside)};
  const auto classes = node.find(kClasses);
  if (!classes) node.fail(fmt::format("the matrix has no '{}'; {}", kClasses, kRemedy));
  expect_classes(*classes);
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    const std::string_view name = models::kComputeClassTable[i].name;
    const auto row = classes->find(name);
    if (!row) {
      classes->fail(fmt::format("the matrix has no row for '{}', one of {}; {}", name,
                                fmt::join(models::compute_class_names(), ", "), kRemedy));
    }
    matrix.classes[i] = read_class(*row);
  }
  return matrix;
}

}  // namespace

OverlapFactors read_overlap(const io::YamlNode& node, const OverlapFactors& fallback) {
  node.expect_keys({kOverlapConstants[0].name, kOverlapConstants[1].name, kOverlapConstants[2].name,
                    kClasses, kCodecBeside, kTransferBeside});
  if (node.has(kClasses) || node.has(kCodecBeside) || node.has(kTransferBeside)) {
    return {.matrix = read_matrix(node)};
  }
  OverlapFactors factors = fallback;
  for (const OverlapConstant& constant : kOverlapConstants) {
    if (const auto given = node.find(constant.name))
      set_constant(factors, constant, factor(*given));
  }
  return factors;
}

}  // namespace hipress::costs
