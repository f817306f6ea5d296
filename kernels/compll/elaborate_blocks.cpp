// Evaluates operators on blocks of a gradient, and checks the rules for programs that use them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

namespace {

/// Limits of a block's size: whole words of 32 elements, and at most what a warp of a GPU holds.
constexpr std::int64_t kLeastBlock = 32, kMostBlock = 2048, kBlockStep = 32;

constexpr const char* kSizes =
    "a block has 32 to 2048 elements, a multiple of 32: a number, or a parameter such as int block "
    "= 256 in [32, 2048]";

}  // namespace

void Elaborator::refuse_beside_blocks(const Place& place, const std::string& why) {
  throw CompileError(place, fmt::format("a program with blocks sends floats for every block and a "
                                        "code for every element, and nothing else: {}",
                                        why));
}

NodeId Elaborator::block_size(const Expression& operand) {
  const NodeId size = whole_number(operand);
  const Node node = values()[size];
  const auto fits = [](double value) {
    return value >= kLeastBlock && value <= kMostBlock &&
           std::fmod(value, static_cast<double>(kBlockStep)) == 0;
  };
  if (node.op == Op::kParameter) {
    ProgramParameter& parameter = program_.parameters[static_cast<std::size_t>(node.integer)];
    parameter.least = std::max(parameter.least, static_cast<double>(kLeastBlock));
    parameter.most = std::min(parameter.most, static_cast<double>(kMostBlock));
    parameter.multiple = kBlockStep;
    if (parameter.least > parameter.most || (parameter.value && !fits(*parameter.value))) {
      throw CompileError(operand.place, kSizes);
    }
    values().hold_parameter(node.integer, {static_cast<std::int64_t>(std::ceil(parameter.least)),
                                           static_cast<std::int64_t>(std::floor(parameter.most))});
  } else if (node.op != Op::kInteger || !fits(static_cast<double>(node.integer))) {
    throw CompileError(operand.place, kSizes);
  }
  if (program_.block >= 0 && program_.block != size) {
    throw CompileError(operand.place, "all blocks of a program have one size");
  }
  program_.block = size;
  if (general_) refuse_beside_blocks(general_->place, general_->why);
  return size;
}

bool Elaborator::is_of_blocks(int domain) const {
  const Domain& at = program_.domains[static_cast<std::size_t>(domain)];
  return at.kind == DomainKind::kBlocks ||
         (at.kind == DomainKind::kExtracted && is_of_blocks(at.source));
}

Thing Elaborator::reduce_blocks(const Expression& call) {
  require_encoder(call);
  const Thing elements = array(*call.operands[0]);
  const NodeId size = block_size(*call.operands[1]);
  const Thing initial = scalar(*call.operands[2]);
  const Thing f = function(*call.operands[3]);
  if (elements.domain != 0 || elements.type.kind() != ScalarKind::kFloat) {
    throw CompileError(call.operands[0]->place,
                       "a reduction by blocks takes an array of floats as long as the gradient");
  }
  if (f.lambda->parameters.size() != 2) {
    throw CompileError(call.operands[3]->place, "reduce takes a lambda of two values");
  }
  const Type type{TypeName::kFloat};
  const Thing body = apply(f,
                           {made(type, values().leaf(Op::kFirst, type.kind())),
                            made(type, values().leaf(Op::kSecond, type.kind()))},
                           call.place);
  const ReductionKind kind = reduction_kind(body.node);
  if (body.type.kind() != ScalarKind::kFloat || kind == ReductionKind::kFold ||
      kind == ReductionKind::kWholeSum) {
    throw CompileError(call.operands[3]->place,
                       "blocks have sums, minima and maxima of floats: a + b, min(a, b) or "
                       "max(a, b)");
  }
  if (!is_number(convert(initial, type, call.operands[2]->place).node, 0)) {
    throw CompileError(call.operands[2]->place, "the initial value of blocks is 0");
  }
  expect_element_code(elements.node, call.operands[0]->place);
  if (is_made_of(elements.node, Op::kOfBlock)) {
    throw CompileError(
        call.operands[0]->place,
        "a reduction by blocks takes values of the gradient alone: a block is measured once");
  }
  auto& reductions = program_.encoder->block_reductions;
  if (reductions.size() == 8) throw CompileError(call.place, "more than 8 reductions of blocks");
  reductions.push_back({.kind = kind,
                        .element = elements.node,
                        .initial = values().real(0),
                        .fold = body.node,
                        .domain = 0,
                        .name = {}});
  const int over = domain({.kind = DomainKind::kBlocks, .source = 0, .node = size, .kept = {}});
  return {.kind = ThingKind::kArray,
          .type = type,
          .node = values().element(Op::kInBlocks, ScalarKind::kFloat,
                                   static_cast<std::int64_t>(reductions.size()) - 1, over),
          .domain = over};
}

Thing Elaborator::spread(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 2, "spread(a, block)");
  const Thing from = array(*call.operands[0]);
  if (!is_of_blocks(from.domain) || from.type.kind() != ScalarKind::kFloat) {
    throw CompileError(call.operands[0]->place,
                       "spread takes an array of floats, one for every block");
  }
  block_size(*call.operands[1]);
  expect_element_code(from.node, call.operands[0]->place);
  if (values().draws(from.node)) {
    throw CompileError(call.operands[0]->place, "random numbers are drawn per element");
  }
  auto& spread = program_.spread;
  const auto known = std::find(spread.begin(), spread.end(), from.node);
  const auto number = known - spread.begin();
  if (known == spread.end()) spread.push_back(from.node);
  return {.kind = ThingKind::kArray,
          .type = {TypeName::kFloat},
          .node = values().element(Op::kOfBlock, ScalarKind::kFloat, number)};
}

Thing Elaborator::hadamard(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 3, "hadamard(a, block, condition)");
  Thing from = convert(array(*call.operands[0]), {TypeName::kFloat}, call.operands[0]->place);
  block_size(*call.operands[1]);
  const Thing on = convert(scalar(*call.operands[2]), {TypeName::kBool}, call.operands[2]->place);
  if (values().per_element(on.node) || values().by_slice(on.node)) {
    throw CompileError(call.operands[2]->place, "rotation of blocks depends on parameters only");
  }
  const bool encodes = role_ == Role::kEncoder;
  NodeId& rotation = encodes ? program_.encoder->rotation : program_.decoder->rotation;
  const bool first = rotation < 0;
  const bool of_gradient = values()[from.node].op == Op::kGradient;
  if (from.domain != 0 || (encodes ? !of_gradient : !first)) {
    throw CompileError(call.operands[0]->place,
                       "an encoder rotates its gradient, and a decoder what becomes its gradient, "
                       "once");
  }
  rotation = on.node;
  if (encodes) {
    from.node = values().element(Op::kRotated, ScalarKind::kFloat);
  } else {
    unrotated_ = from.node;
  }
  return from;
}

bool Elaborator::is_made_of(NodeId value, Op leaf) {
  std::vector<NodeId> open = {value};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    if (values()[id].op == leaf) return true;
    for (const NodeId argument : values()[id].arguments) {
      if (argument >= 0) open.push_back(argument);
    }
  }
  return false;
}

void Elaborator::take_blocks(const std::vector<const Expression*>& arrays) {
  Encoder& encoder = *program_.encoder;
  if (!encoder.fields.empty()) be_general(arrays[0]->place, "its message has a scalar");
  constexpr std::size_t kMaxSent = 4;
  if (arrays.size() < 2 || arrays.size() > kMaxSent + 1) {
    be_general(arrays[0]->place, "its message is 1 to 4 arrays for the blocks, then the codes");
  }
  for (std::size_t i = 0; i + 1 < arrays.size(); ++i) {
    const Part& part = encoder.parts[i];
    if (part.kind != FieldKind::kFloat || !is_of_blocks(part.domain)) {
      be_general(arrays[i]->place, "this array holds no float for every block");
    }
    expect_element_code(part.value, arrays[i]->place);
    if (values().draws(part.value)) {
      throw CompileError(arrays[i]->place, "random numbers are drawn per element");
    }
  }
  const Part& codes = encoder.parts.back();
  const Expression& last = *arrays.back();
  const bool whole = codes.kind == FieldKind::kByte || codes.kind == FieldKind::kWord;
  if (codes.domain != 0 || !whole || !bound_bits(codes.bits, 8, last)) {
    be_general(last.place,
               "the last array of its message is a code for every element, an array of uint<1> to "
               "uint<8>");
  }
  expect_element_code(codes.value, last.place);
  encoder.code = codes.value;
  encoder.bits = codes.bits;
}

void Elaborator::check_blocks() {
  if (encoder_ == nullptr) {
    throw CompileError(decoder_->place, "a decoder of blocks stands beside its encoder");
  }
  const Encoder& encoder = *program_.encoder;
  const Place place = encoder_->place;
  if (!encoder.reductions.empty()) be_general(place, "it reduces the whole gradient");
  if (encoder.code < 0) be_general(place, "its message was written before it came to blocks");
  std::vector<NodeId> elements = {encoder.code};
  for (const Reduction& reduction : encoder.block_reductions) elements.push_back(reduction.element);
  const bool rotated_only = std::none_of(elements.begin(), elements.end(), [&](NodeId id) {
    return encoder.rotation >= 0 && is_made_of(id, Op::kGradient);
  });
  if (!rotated_only) {
    throw CompileError(place, "a gradient that is rotated is read in no other way");
  }
  if (!program_.decoder) return;
  const Decoder& decoder = *program_.decoder;
  if (decoder.rotation != encoder.rotation) {
    throw CompileError(decoder_->place,
                       "a decoder rotates back what its encoder rotated, under the same condition");
  }
  if (decoder.rotation >= 0 && decoder.level != unrotated_) {
    throw CompileError(decoder_->place, "what is rotated back is the gradient as it is");
  }
  if (decoder.bits != encoder.bits) {
    throw CompileError(decoder_->place, "the codes of encoder and decoder have other bits");
  }
}

}  // namespace hipress::compll
