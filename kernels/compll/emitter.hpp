#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/digest.hpp"
#include "kernels/compll/code.hpp"
#include "kernels/compll/program.hpp"

namespace hipress::compll {

/// Base of the generators of all kinds. Generates what they share: parameters, the message's
/// fields, and leaves (values without operands).
class Emitter {
 protected:
  Emitter(const Program& program, const io::Digest& sources);

  /// Maximum number of generated lines: g++ takes about ten seconds. Algorithms need far fewer.
  static constexpr int kMaxLines = 20000;

  std::string struct_name() const;

  /// Makes the whole generated file from the struct's members. `macro` exports the struct.
  std::string file(const std::string& members, const std::string& headers,
                   const std::string& macro) const;

  // ---- leaves ----

  std::string parameter(std::int64_t number) const;
  /// Code of an encoder's leaf with one value per slice; size and reductions are in `scalars`.
  std::string scalar_leaf(NodeId id) const;
  /// Code of a decoder's leaf with one value per slice; the message's fields are in `wire`.
  std::string decoder_leaf(NodeId id) const;
  /// Code of a leaf with one value per element, on lanes.
  std::string element_leaf(NodeId id) const;
  std::string reduction_name(std::int64_t number) const;

  // ---- members of the struct ----

  /// Tag of messages: a hash of the program's name and of the message's fields and arrays.
  std::uint32_t tag() const;
  std::string parameters() const;
  std::string constructor() const;
  std::string wire() const;
  /// Statements that fill `wire` with the values that `code` computes.
  template <class Code>
  std::string fill_wire(const Code& code) const {
    std::string text;
    for (std::size_t i = 0; i < encoder_.fields.size(); ++i) {
      text += fmt::format("    wire.{} = static_cast<{}>({});\n", wire_names_[i], field_type(i),
                          code.text(encoder_.field_values[i]));
    }
    return text;
  }
  /// Code that checks that all float fields are finite: "is_finite(wire.a) && … && ", or "".
  std::string finite_wire() const;

  /// Code for values that element code captures: members of a struct, the statements that compute
  /// their initial values (`setup`), and these values, in the members' order.
  struct Captured {
    std::string members, setup, values;
  };
  template <class Leaves>
  Captured captured(const LaneCode& code, const Leaves& leaves, const char* indent) const;

  Program program_;
  Values& values_ = program_.values;
  const Encoder& encoder_;
  const io::Digest sources_;
  std::vector<std::string> wire_names_;

 private:
  /// Adds to the number of operations per element; throws std::length_error if it gets too large.
  void add_work(int operations) const;
  void name_wire();
  const char* field_type(std::size_t field) const;
  std::string declared_parameters() const;

  mutable int work_ = 0;
};

template <class Leaves>
Emitter::Captured Emitter::captured(const LaneCode& code, const Leaves& leaves,
                                    const char* indent) const {
  add_work(code.work());
  Captured made;
  std::vector<NodeId> ids;
  for (const Capture& capture : code.captures()) ids.push_back(capture.id);
  const ScalarCode scalar(values_, ids, leaves);
  made.setup = scalar.lines();
  for (const Capture& capture : code.captures()) {
    const ScalarKind kind = values_[capture.id].kind;
    const bool real = kind == ScalarKind::kFloat;
    made.members +=
        fmt::format("{}{} {};\n", indent, real ? "float" : cpp_type(kind), capture.name);
    const std::string& text = scalar.text(capture.id);
    made.values += fmt::format("{}{}", made.values.empty() ? "" : ", ",
                               real ? fmt::format("static_cast<float>({})", text) : text);
  }
  for (const std::int64_t site : code.sites()) {
    made.members += fmt::format("{}DrawStream draws_{};\n", indent, site);
    made.values +=
        fmt::format("{}stream_of_site(draws, {})", made.values.empty() ? "" : ", ", site);
  }
  return made;
}

}  // namespace hipress::compll
