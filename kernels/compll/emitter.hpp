#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/digest.hpp"
#include "kernels/compll/code.hpp"
#include "kernels/compll/program.hpp"

namespace hipress::compll {

/// What the texts of all kinds of programs share: parameters, the message's fields, leaves.
class Emitter {
 protected:
  Emitter(const Program& program, const io::Digest& sources);

  /// As C++, what g++ compiles in about ten seconds; far above what any algorithm needs.
  static constexpr int kMaxLines = 20000;

  std::string struct_name() const;

  /// The whole file around the members of the struct. `macro` exports it.
  std::string file(const std::string& members, const std::string& headers,
                   const std::string& macro) const;

  // ---- leaves ----

  std::string parameter(std::int64_t number) const;
  /// Of an encoder, once per slice; `scalars` holds what measuring finds.
  std::string scalar_leaf(NodeId id) const;
  /// Of a decoder, once per slice; `wire` holds the message's fields.
  std::string decoder_leaf(NodeId id) const;
  /// On lanes.
  std::string element_leaf(NodeId id) const;
  std::string reduction_name(std::int64_t number) const;

  // ---- members of the struct ----

  /// Messages of another format, algorithm or version of this compiler must not be taken for ours.
  std::uint32_t tag() const;
  std::string parameters() const;
  std::string constructor() const;
  std::string wire() const;
  /// Statements that fill a Wire, `wire`, from values that `code` knows.
  template <class Code>
  std::string fill_wire(const Code& code) const {
    std::string text;
    for (std::size_t i = 0; i < encoder_.fields.size(); ++i) {
      text += fmt::format("    wire.{} = static_cast<{}>({});\n", wire_names_[i], field_type(i),
                          code.text(encoder_.field_values[i]));
    }
    return text;
  }
  /// "is_finite(wire.a) && …"
  std::string finite_wire() const;

  /// Members for what code takes from outside, and their values, in order.
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
  /// Counts what is done for every element. std::length_error for too much.
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
