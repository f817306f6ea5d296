#include "kernels/registry/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "io/utf8.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "kernels/frames/casts.hpp"
#include "kernels/frames/compiled_algorithm.hpp"
#include "kernels/host/codec.hpp"
#include "kernels/host/isa.hpp"
#include "kernels/lossless/codec.hpp"
#include "kernels/lowrank/codec.hpp"
#include "kernels/sparse/packed.hpp"
#include "kernels/user/algorithm.hpp"
#ifdef HIPRESS_HAVE_CUDA
#include "kernels/cuda/codec.hpp"
#include "kernels/user/algorithm_cuda.hpp"
#endif

// Rows of the algorithms in algorithms/*.pse, in the order of all listings: name, coarseness,
// minimal traffic and launches, help, and the names of parameters' values.
//
// An encode reads 4 bytes per element and writes the code's bits; error feedback reads and writes
// the residual (8 more). TernGrad reads its input twice, since its code needs the minimum and the
// maximum first. A decode reads the code and writes 4 bytes; decode-and-add reads those 4 bytes as
// well, but for DGC and GradDrop touches only the elements that were sent. With the default rho,
// DGC and GradDrop send 1 % of the entries; DGC reads and writes two state arrays, GradDrop a
// residual. A block quantiser also sends four bytes per block: 1/64 byte per element for blocks of
// 256, 1/16 for 64, 1/32 for 128, 1/8 for 32.
//
// fp4block has int4block's coarseness. On normally distributed numbers, the relative RMS error is
// 15 % for 4 bits of int4block, 10 % for E2M1 and 18 % for E3M0; it is larger for tbq and terngrad,
// which have the same coarseness.
#define HIPRESS_TRAFFIC(ENCODE, DECODE, ADD, ENCODE_KERNELS, DECODE_KERNELS) \
  Traffic { ENCODE, DECODE, ADD, ENCODE_KERNELS, DECODE_KERNELS }
#define HIPRESS_FOR_EACH_PROGRAM(ROW)                                                      \
  ROW(onebit, 4, HIPRESS_TRAFFIC(12.125, 4.125, 8.125, 3, 1),                              \
      "1 bit per element: the sign; decodes to the mean of that sign's values")            \
  ROW(tbq, 3, HIPRESS_TRAFFIC(12.25, 4.25, 8.25, 1, 1),                                    \
      "2 bits per element: +tau, -tau or 0, by comparison with the threshold tau")         \
  ROW(terngrad, 3, HIPRESS_TRAFFIC(8.25, 4.25, 8.25, 3, 1),                                \
      "b bits per element: unbiased stochastic rounding between the slice's minimum and "  \
      "maximum")                                                                           \
  ROW(dgc, 5, HIPRESS_TRAFFIC(20.1, 4.7, 0.7, 12, 2),                                      \
      "the largest rho of all entries; the others wait. With momentum it is an "           \
      "optimizer of its own, no mean")                                                     \
  ROW(graddrop, 5, HIPRESS_TRAFFIC(12.1, 4.7, 0.7, 12, 2),                                 \
      "the largest rho of all entries; the others are added to the next gradient")         \
  ROW(int8block, 2, HIPRESS_TRAFFIC(5.015625, 5.015625, 9.015625, 2, 1),                   \
      "8 bits per element: 255 even levels up to the largest magnitude of its block")      \
  ROW(int4block, 3, HIPRESS_TRAFFIC(4.5625, 4.5625, 8.5625, 2, 1),                         \
      "4 bits per element: 15 even levels up to the largest magnitude of its block")       \
  ROW(fp8block, 2, HIPRESS_TRAFFIC(5.03125, 5.03125, 9.03125, 2, 1),                       \
      "8 bits per element: an E4M3 float, scaled by the largest magnitude of its block")   \
  ROW(fp4block, 3, HIPRESS_TRAFFIC(4.625, 4.625, 8.625, 2, 1),                             \
      "4 bits per element: an E3M0 or E2M1 float, scaled by the largest magnitude of its " \
      "block",                                                                             \
      {"format", {"e3m0", "e2m1"}})

#define HIPRESS_DECLARE_PROGRAMS(NAME, ...)                                      \
  extern "C" const hipress::kernels::CompiledAlgorithm hipress_##NAME##_scalar,  \
      hipress_##NAME##_portable, hipress_##NAME##_avx2, hipress_##NAME##_avx512; \
  namespace hipress::kernels {                                                   \
  struct CudaKernels;                                                            \
  const CudaKernels& hipress_##NAME##_cuda();                                    \
  }
HIPRESS_FOR_EACH_PROGRAM(HIPRESS_DECLARE_PROGRAMS)
#undef HIPRESS_DECLARE_PROGRAMS

namespace hipress::kernels {

namespace {

using Values = std::map<std::string, double>;

/// A row of the registry, and a factory for one instruction set.
struct Entry {
  AlgorithmRow row;
  std::function<std::unique_ptr<Codec>(const Values& values, Isa isa)> make_for;
};

/// Names of the values of a program's parameter: Parameter::names.
struct NamedValues {
  std::string_view parameter;
  std::vector<std::string_view> names;
};

/// Code of one program: for CPUs, indexed by Isa, and for GPUs. A pointer is null if this build
/// lacks that code. `cuda` is called when a codec is made, because it may have to compile the
/// kernels of a user's program.
struct Programs {
  std::array<const CompiledAlgorithm*, 4> host;
  std::function<const CudaKernels&()> cuda;
};

/// Values in the program's order of parameters. Throws std::invalid_argument for a value that is
/// not a multiple of DeclaredParameter::multiple.
std::vector<double> in_order(const CompiledAlgorithm& program, const Values& values) {
  std::vector<double> ordered;
  for (int i = 0; i < program.parameter_count; ++i) {
    const DeclaredParameter& declared = program.parameters[i];
    const double value = values.at(declared.name);
    if (declared.multiple > 1 && std::fmod(value, declared.multiple) != 0) {
      const double down = value - std::fmod(value, declared.multiple);
      throw std::invalid_argument(fmt::format(
          "algorithm {0}: {1}={2} is no multiple of {3}; give {1}={4} or {1}={5}", program.name,
          declared.name, value, declared.multiple, down, down + declared.multiple));
    }
    ordered.push_back(value);
  }
  return ordered;
}

/// Name of the parameter of all sparsifiers that selects the packing of entries.
constexpr std::string_view kPacking = "packing";

sparse::Packing packing_of(const Values& values) {
  const auto packing = values.find(std::string(kPacking));
  return packing == values.end() ? sparse::Packing::kNone
                                 : static_cast<sparse::Packing>(static_cast<int>(packing->second));
}

std::unique_ptr<Codec> host_codec(const CompiledAlgorithm& program, const Values& values, Isa isa) {
  return sparse::make_packed(make_host_algorithm(program, in_order(program, values).data(), isa),
                             packing_of(values), program.waiting_array);
}

Entry program_entry(int coarseness, const Traffic& traffic, std::string_view help,
                    const Programs& programs, const std::vector<NamedValues>& named = {}) {
  const CompiledAlgorithm& any = *programs.host[0];
  Entry entry;
  entry.row.name = any.name;
  entry.row.coarseness = coarseness;
  entry.row.traffic = traffic;
  entry.row.help = help;
  for (int i = 0; i < any.parameter_count; ++i) {
    const DeclaredParameter& declared = any.parameters[i];
    entry.row.parameters.push_back({.name = declared.name,
                                    .value = declared.value,
                                    .least = declared.least,
                                    .most = declared.most,
                                    .whole = declared.whole,
                                    .own = declared.own});
  }
  for (Parameter& parameter : entry.row.parameters) {
    for (const NamedValues& values : named) {
      if (values.parameter == parameter.name) parameter.names = values.names;
    }
  }
  if (any.cuda.kind == CudaKind::kSparsifier) {
    entry.row.parameters.push_back(
        {.name = kPacking, .value = 0, .least = 0, .most = 2, .whole = true});
  }
  entry.make_for = [programs](const Values& values, Isa isa) {
    return host_codec(*programs.host[static_cast<std::size_t>(isa)], values, isa);
  };
  entry.row.make = [programs](const Values& values, Device device) -> std::unique_ptr<Codec> {
    const Isa isa = best_isa();
    const CompiledAlgorithm& program = *programs.host[static_cast<std::size_t>(isa)];
    if (device == Device::kCpu) return host_codec(program, values, isa);
    const std::vector<double> ordered = in_order(program, values);
    if (program.cuda.kind == CudaKind::kNone) {
      throw std::invalid_argument(fmt::format(
          "algorithm '{}' runs on CPUs only: it is neither a quantiser nor a sparsifier, as "
          "kernels/compll/language.md describes them; make it one, or use the CPU",
          program.name));
    }
#ifdef HIPRESS_HAVE_CUDA
    if (programs.cuda == nullptr) return nullptr;
    return sparse::make_cuda_packed(make_cuda_algorithm(program, programs.cuda(), ordered.data()),
                                    packing_of(values), program.waiting_array);
#else
    return nullptr;
#endif
  };
  return entry;
}

template <class Format>
std::unique_ptr<Codec> make_cast(const Values& /*values*/, Device device) {
  if (device == Device::kCpu) return make_host_cast<Format>(best_isa());
#ifdef HIPRESS_HAVE_CUDA
  return make_cuda_cast<Format>();
#else
  return nullptr;
#endif
}

template <class Format>
Entry cast_entry() {
  // An encode reads 4 bytes per element and writes 2; a decode does the reverse.
  return {{Format::kName, kFinest, {6, 6, 10}, Format::kHelp, {}, make_cast<Format>},
          [](const Values& /*values*/, Isa isa) { return make_host_cast<Format>(isa); }};
}

using MakeLowRank = std::unique_ptr<Codec> (*)(const Values& values,
                                               std::unique_ptr<const lowrank::Operators> on);

Entry low_rank_entry(std::string_view name, const Traffic& traffic, std::string_view help,
                     MakeLowRank make) {
  const auto make_on = [make](const Values& values, Device device) -> std::unique_ptr<Codec> {
    if (device == Device::kCpu) return make(values, lowrank::make_host_operators(best_isa()));
#ifdef HIPRESS_HAVE_CUDA
    return make(values, lowrank::make_cuda_operators());
#else
    return nullptr;
#endif
  };
  return {{name, kCoarsest, traffic, help, lowrank::parameters(), make_on, true},
          [make](const Values& values, Isa isa) {
            return make(values, lowrank::make_host_operators(isa));
          }};
}

/// Entries of the low-rank algorithms. With error feedback, each stage's product reads the gradient
/// and the residual, 8 bytes per element. The decode reads both again and writes both.
std::vector<Entry> low_rank_entries() {
  return {low_rank_entry("powersgd", {16, 16, 0},
                         "a product of two factors of low rank, by one step of a power iteration",
                         lowrank::make_powersgd),
          low_rank_entry("acpsgd", {8, 16, 0},
                         "as powersgd, with one of the two factors in each step, in turns",
                         lowrank::make_acpsgd),
          low_rank_entry("rsketch", {8, 16, 0},
                         "the part of a gradient in a random subspace, another in every step",
                         lowrank::make_rsketch)};
}

/// An encode reads 4 bytes per element and writes 3 bytes and a coded exponent, together 3.4 bytes
/// for normally distributed numbers. A decode reads those 3.4 bytes and writes 4.
Entry lossless_entry() {
  Entry entry;
  entry.row.name = "lossless";
  entry.row.traffic = {7.4, 7.4, 11.4, 3, 1};
  entry.row.help = "the same bits: exponents in a Huffman code, signs and mantissas as they are";
  entry.row.lossless = true;
  entry.row.make = [](const Values& /*values*/, Device device) -> std::unique_ptr<Codec> {
    if (device == Device::kCpu) return lossless::make_codec();
#ifdef HIPRESS_HAVE_CUDA
    return lossless::make_cuda_codec();
#else
    return nullptr;
#endif
  };
  entry.make_for = [](const Values& /*values*/, Isa /*isa*/) { return lossless::make_codec(); };
  return entry;
}

/// All entries; a deque, so that references stay valid when one is added.
std::deque<Entry>& entries() {
#ifdef __x86_64__
#define HIPRESS_VECTOR_PROGRAMS(NAME) &hipress_##NAME##_avx2, &hipress_##NAME##_avx512
#else
#define HIPRESS_VECTOR_PROGRAMS(NAME) nullptr, nullptr
#endif
#ifdef HIPRESS_HAVE_CUDA
#define HIPRESS_CUDA_KERNELS(NAME) hipress_##NAME##_cuda
#else
#define HIPRESS_CUDA_KERNELS(NAME) nullptr
#endif
#define HIPRESS_PROGRAMS(NAME)                                                             \
  Programs {                                                                               \
    {&hipress_##NAME##_scalar, &hipress_##NAME##_portable, HIPRESS_VECTOR_PROGRAMS(NAME)}, \
        HIPRESS_CUDA_KERNELS(NAME)                                                         \
  }
#define HIPRESS_PROGRAM_ENTRY(NAME, COARSENESS, TRAFFIC, HELP, ...) \
  program_entry(COARSENESS, TRAFFIC, HELP, HIPRESS_PROGRAMS(NAME), {__VA_ARGS__}),
#define HIPRESS_CAST_ENTRY(Format) cast_entry<Format>(),
  static std::deque<Entry> table = [] {
    std::deque<Entry> made = {HIPRESS_FOR_EACH_PROGRAM(HIPRESS_PROGRAM_ENTRY)
                                  HIPRESS_FOR_EACH_CAST(HIPRESS_CAST_ENTRY)};
    for (Entry& entry : low_rank_entries()) made.push_back(std::move(entry));
    made.push_back(lossless_entry());
    return made;
  }();
#undef HIPRESS_PROGRAM_ENTRY
#undef HIPRESS_CAST_ENTRY
  return table;
}

/// Entry of a program compiled at run time; made once per program.
const Entry& user_entry(const std::string& path, double compile_timeout_s) {
  static std::mutex mutex;
  static std::map<const UserProgram*, Entry> made;
  const UserProgram& program = load_program(path, compile_timeout_s);
  const std::lock_guard lock(mutex);
  const auto known = made.find(&program);
  if (known != made.end()) return known->second;
  Programs programs;
  programs.host.fill(program.algorithm);
#ifdef HIPRESS_HAVE_CUDA
  programs.cuda = [&program]() -> const CudaKernels& { return load_kernels(program); };
#endif
  return made.emplace(&program, program_entry(0, {}, "a program compiled at run time", programs))
      .first->second;
}

/// Describes parameters, for error messages: "tau from 1e-30 to 1e+30 (default 0.5)", "format, e3m0
/// or e2m1 (default e3m0)".
std::string describe(const std::vector<Parameter>& parameters) {
  if (parameters.empty()) return "none";
  std::vector<std::string> texts;
  for (const Parameter& parameter : parameters) {
    if (!parameter.names.empty()) {
      texts.push_back(fmt::format("{}, {} (default {})", parameter.name,
                                  fmt::join(parameter.names, " or "),
                                  parameter.names[static_cast<std::size_t>(parameter.value)]));
      continue;
    }
    const std::string value =
        std::isnan(parameter.value) ? "no default" : fmt::format("default {}", parameter.value);
    texts.push_back(fmt::format("{}{} from {} to {} ({})", parameter.name,
                                parameter.whole ? ", a whole number," : "", parameter.least,
                                parameter.most, value));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

[[noreturn]] void refuse(std::string_view text, const AlgorithmRow& row, const std::string& reason,
                         const std::string& pause = "; ") {
  throw std::invalid_argument(fmt::format("algorithm {}: {}{}parameters of {}: {}", io::quote(text),
                                          reason, pause, row.name, describe(row.parameters)));
}

/// Parses the whole text as a number; empty if it is not one.
std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Parses a parameter's value: a number, or one of the names if the values have names.
std::optional<double> value_in(std::string_view text, const Parameter& parameter) {
  if (parameter.names.empty()) return number_in(text);
  const auto found = std::ranges::find(parameter.names, text);
  if (found == parameter.names.end()) return std::nullopt;
  return static_cast<double>(found - parameter.names.begin());
}

/// Parses one "name=value" into `values`.
void assign(std::string_view assignment, std::string_view text, const AlgorithmRow& row,
            Values& values, std::vector<std::string>& given) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    refuse(text, row, fmt::format("{} is not of the form name=value", io::quote(assignment)));
  }
  const std::string name(trimmed(assignment.substr(0, equals)));
  constexpr std::size_t kMostShown = 80;
  const std::string_view given_value = trimmed(assignment.substr(equals + 1));
  const auto parameter = std::find_if(row.parameters.begin(), row.parameters.end(),
                                      [&](const Parameter& p) { return p.name == name; });
  if (parameter == row.parameters.end()) {
    std::vector<std::string_view> names;
    for (const Parameter& known : row.parameters) names.push_back(known.name);
    refuse(text, row, fmt::format("there is no parameter {}", io::quote(name)),
           io::before_known(name, names));
  }
  if (std::find(given.begin(), given.end(), name) != given.end()) {
    refuse(text, row, fmt::format("{} is given twice", io::quote(name)));
  }
  given.push_back(name);
  const std::optional<double> value = value_in(given_value, *parameter);
  if (!value) {
    refuse(text, row,
           parameter->names.empty()
               ? fmt::format("{} is not a number", io::quote(given_value))
               : fmt::format("{} is {}, not {}", name, fmt::join(parameter->names, " or "),
                             io::quote(given_value)));
  }
  if (!(*value >= parameter->least && *value <= parameter->most) ||
      (parameter->whole && *value != std::floor(*value))) {
    refuse(text, row,
           fmt::format("{}={} is out of range", name, given_value.substr(0, kMostShown)));
  }
  values[name] = *value;
}

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries()) names.push_back(entry.row.name);
  return names;
}

/// Entry and parameter values of "name" or "name(parameter=value, …)", with defaults filled in.
std::pair<const Entry&, Values> parse(std::string_view text, double compile_timeout_s) {
  if (io::printable(text) != text) {
    throw std::invalid_argument(
        fmt::format("algorithm {} has control characters or is not UTF-8; name one of {}, or a "
                    "program of yours, x.pse, in plain text",
                    io::quote(text), algorithm_names()));
  }
  const std::string_view whole = trimmed(text);
  const std::size_t open = parameters_at(whole);
  const std::string_view name = name_of_algorithm(text);
  const std::optional<std::string> program = program_file(text);
  const Entry* entry = program ? &user_entry(*program, compile_timeout_s) : nullptr;
  for (const Entry& known : entries()) {
    if (known.row.name == name) entry = &known;
  }
  if (entry == nullptr) {
    throw std::invalid_argument(
        fmt::format("unknown algorithm {}{}known are {}, and programs (x.pse)", io::quote(name),
                    io::before_known(name, known_names()), algorithm_names()));
  }
  Values values;
  for (const Parameter& parameter : entry->row.parameters) {
    values.emplace(parameter.name, parameter.value);
  }
  if (open != std::string_view::npos) {
    if (whole.back() != ')') refuse(text, entry->row, "a ')' is missing at the end");
    std::string_view list = whole.substr(open + 1, whole.size() - open - 2);
    std::vector<std::string> given;
    while (!trimmed(list).empty()) {
      const std::size_t comma = list.find(',');
      assign(trimmed(list.substr(0, comma)), text, entry->row, values, given);
      list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    }
  }
  for (const auto& [parameter, value] : values) {
    if (std::isnan(value)) {
      refuse(text, entry->row,
             fmt::format("'{}' has no default; write {}({}=…)", parameter, name, parameter));
    }
  }
  return {*entry, std::move(values)};
}

}  // namespace

namespace {

std::vector<AlgorithmRow>& rows() {
  static std::vector<AlgorithmRow> table = [] {
    std::vector<AlgorithmRow> made;
    for (const Entry& entry : entries()) made.push_back(entry.row);
    return made;
  }();
  return table;
}

/// True if the name has only letters, digits and "_", so that lists of algorithms, profiles and
/// plans can hold it.
bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

const std::vector<AlgorithmRow>& algorithms() { return rows(); }

void register_algorithm(AlgorithmRow row) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(
        fmt::format("algorithm {} cannot be registered: {}", io::quote(row.name), why));
  };
  if (!is_plain_name(row.name)) refuse("its name needs letters, digits and '_' alone");
  if (find_algorithm(row.name) != nullptr || row.name == "none" || row.name == "raw") {
    refuse("its name is taken; choose another");
  }
  if (!row.make) refuse("its row has no 'make'");
  for (const Parameter& parameter : row.parameters) {
    if (std::ranges::count(row.parameters, parameter.name, &Parameter::name) > 1) {
      refuse(fmt::format("its parameter '{}' is there twice", parameter.name));
    }
  }
  rows().push_back(row);
  const auto make_for = [make = row.make](const Values& values, Isa /*isa*/) {
    return make(values, Device::kCpu);
  };
  entries().push_back({std::move(row), make_for});
}

const AlgorithmRow* find_algorithm(std::string_view text) {
  const std::string_view name = name_of_algorithm(text);
  const auto found =
      std::ranges::find_if(entries(), [&](const Entry& entry) { return entry.row.name == name; });
  return found == entries().end() ? nullptr : &found->row;
}

std::optional<double> parameter_value(std::string_view text, std::string_view name) {
  const AlgorithmRow* const row = find_algorithm(text);
  const Parameter* known = nullptr;
  if (row != nullptr) {
    const auto found = std::ranges::find(row->parameters, name, &Parameter::name);
    if (found != row->parameters.end()) known = &*found;
  }
  if (const std::optional<std::string> given = parameter_of(text, name)) {
    return known != nullptr ? value_in(*given, *known) : number_in(*given);
  }
  return known != nullptr ? std::optional(known->value) : std::nullopt;
}

std::string algorithm_names() { return fmt::format("{}", fmt::join(known_names(), ",")); }

std::string optimizer_note(std::string_view text) {
  const auto [entry, values] = parse(text, kCompileTimeout_s);
  for (const Parameter& parameter : entry.row.parameters) {
    const double value = values.at(std::string(parameter.name));
    if (!parameter.own || value == 0) continue;
    return fmt::format(
        "{0} is an optimizer of its own: its {1} acts on every node's gradient before it is sent, "
        "so the applied update is not the mean of gradients{2}. Take {1} out of the job's "
        "optimizer, or out of the algorithm",
        trimmed(text), parameter.name,
        parameter.name == "momentum"
            ? fmt::format(", but up to {:.3g} times it; a rate that suits the mean is to be "
                          "multiplied by {:.3g}",
                          1 / (1 - value), 1 - value)
            : std::string());
  }
  return {};
}

bool names_algorithm(std::string_view text) {
  return program_file(text) || find_algorithm(text) != nullptr;
}

std::unique_ptr<Codec> make_codec(std::string_view text, Device device, double compile_timeout_s) {
  const auto [entry, values] = parse(text, compile_timeout_s);
  std::unique_ptr<Codec> codec = entry.row.make(values, device);
  if (codec == nullptr) {
    throw std::invalid_argument(fmt::format(
        "algorithm {}: this build has no CUDA back end; configure with -DHIPRESS_CUDA=ON or use "
        "the CPU",
        io::quote(text)));
  }
  return codec;
}

std::unique_ptr<Codec> make_codec_for(std::string_view text, Isa isa) {
  const std::vector<Isa>& isas = available_isas();
  if (std::find(isas.begin(), isas.end(), isa) == isas.end()) {
    throw std::invalid_argument(
        fmt::format("instruction set '{}' is not available here", to_string(isa)));
  }
  const auto [entry, values] = parse(text, kCompileTimeout_s);
  return entry.make_for(values, isa);
}

}  // namespace hipress::kernels
