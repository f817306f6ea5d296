#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/compll/ast.hpp"
#include "kernels/compll/program.hpp"

/// Implementation of elaborate(): symbolic execution of a program. elaborate.cpp: functions, names,
/// types; elaborate_statements.cpp: statements, messages; elaborate_expressions.cpp: expressions,
/// lambdas; elaborate_operators.cpp, elaborate_blocks.cpp: operators; elaborate_lanes.cpp: limits
/// of element code on lanes.
namespace hipress::compll {

using ast::Expression;
using ast::ExpressionKind;
using ast::Statement;
using ast::StatementKind;
using ast::TypeName;

/// Largest magnitude of whole numbers summed on lanes: WholeSum's limit.
constexpr std::int64_t kMaxWholeSum = 1 << 20;

constexpr double kLargestFloat = 3.4028234663852886e38;

/// The static type of a scalar or of an array's elements.
struct Type {
  TypeName name = TypeName::kVoid;
  NodeId bits = -1;  ///< bits of uint8 and uint<bits>

  ScalarKind kind() const {
    return name == TypeName::kFloat  ? ScalarKind::kFloat
           : name == TypeName::kBool ? ScalarKind::kBool
                                     : ScalarKind::kInt;
  }
  bool clamps() const { return name == TypeName::kUint8 || name == TypeName::kUint; }
};

enum class ThingKind : std::uint8_t { kUnset, kScalar, kArray, kLambda, kMessage };

/// Value of a name or an expression.
struct Thing {
  ThingKind kind = ThingKind::kUnset;
  Type type;
  NodeId node = -1;  ///< the scalar, or the array's current element
  int domain = 0;    ///< domain of an array
  const ast::Lambda* lambda = nullptr;
  std::size_t scope = 0;  ///< lambda: number of variables known at its definition
};

struct Variable {
  std::string name;
  ast::Type declared;
  Type type;
  Thing value;
  Place place;
  std::size_t function = 0;  ///< number of its function call; lambdas of others do not see it
};

/// Result of executing statements, besides variables.
struct Flow {
  NodeId returned = -1;  ///< bool: a return was reached; -1: there was no return
  Thing result;
};

enum class Role : std::uint8_t { kHelper, kEncoder, kDecoder };

/// Name of a type in the language, for messages.
std::string name_of(TypeName name);

class Elaborator {
 public:
  explicit Elaborator(const std::vector<const Source*>& sources);

  Elaborated run();

 private:
  // ---- functions and parameters ----

  void collect();

  static std::string base_name(const ast::Function& function);

  /// Checks a helper by itself, so that uncalled helpers are checked, too.
  void check_helper(const ast::Function& helper);

  /// Value of a parameter's default or range limit.
  std::optional<double> number(const ast::ExpressionPtr& expression);

  void declare_parameters(const ast::Function& entry);

  int constant_bits(const Type& type, const Place& place);

  void add_parameter(ProgramParameter made, const Place& place);

  std::int64_t parameter_number(const std::string& name) const;

  void run_entry(const ast::Function& entry, Role role);

  void match_messages();

  // ---- names ----

  Values& values() { return program_.values; }

  void declare(const std::string& name, const ast::Type& declared, const Thing& value,
               const Place& place);

  /// True if variable `index` is visible: a function sees its own variables, a lambda also those
  /// declared before it.
  bool visible(std::size_t index) const;

  static std::string near(std::string_view word, const std::vector<std::string_view>& known);

  Variable& find(const std::string& name, const Place& place);

  // ---- types ----

  Type scalar_type(const ast::Type& type);

  /// Converts a value to a type, without checks.
  NodeId converted(NodeId node, const Type& type);

  /// Converts a value implicitly. Throws CompileError for a condition as a number, or the reverse.
  Thing convert(const Thing& thing, const Type& type, const Place& place);

  // ---- statements ----

  enum class Scope : std::uint8_t { kProgram, kBranch, kLambda };

  void run(const ast::Block& block, Flow& flow);

  void step(const Place& place);

  void run(const Statement& statement, Flow& flow);

  void run_declaration(const Statement& statement);

  Thing initial_value(const Statement& statement);

  static std::string describe(const Thing& thing);

  void run_feedback(const Statement& statement);

  void run_state(const Statement& statement);

  /// Clamps a value to the range of finite floats, so that states stay finite.
  NodeId saturated(NodeId node);

  bool is_state(const std::string& name) const;

  void run_assignment(const Statement& statement);

  void assign_array(const Statement& statement, std::size_t index);

  void run_if(const Statement& statement, Flow& flow);

  void merge(NodeId condition, const Flow& yes, const Flow& no, Flow& flow, const Place& place);

  /// Value of `condition ? yes : no`, in the common type.
  Thing common(const Thing& yes, const Thing& no, NodeId condition, const Place& place);

  void run_return(const Statement& statement, Flow& flow);

  void run_call(const Statement& statement);

  // ---- messages ----

  void assign_message(const Statement& statement);

  Part part(const Thing& array, const Expression& operand);

  /// True if `part` can be a quantiser's code per element. Otherwise, calls be_general().
  bool take_code(const Part& part, const Expression& operand);

  /// Returns true if `bits`, the number of bits of a code, is always from 1 to `most`. If it is a
  /// parameter, narrows the parameter's range first, provided that its default remains valid.
  bool bound_bits(NodeId bits, std::int64_t most, const Expression& operand);

  /// Throws unless the maximal length of a domain follows from the gradient's length and the
  /// parameters.
  void require_bound(int domain, const Place& place);

  Field field(const Type& type, const Expression& operand);

  void extract(const Expression& call);

  Thing extract_array(const Type& type, const Expression& operand);

  // ---- expressions ----

  Thing scalar(const Expression& expression);

  Thing made(Type type, NodeId node);

  /// Evaluates an expression and records its place.
  Thing evaluate(const Expression& expression);
  Thing value_of(const Expression& expression);

  Thing read_name(const Expression& expression);

  Thing read(const Variable& variable, const Place& place);

  Thing element(const Expression& expression);

  Thing size(const Expression& expression);

  Thing evaluate_array(const Expression& expression);

  Thing unary(const Expression& expression);

  void require_number(const Thing& thing, const Place& place);

  Thing binary(const std::string& op, Thing a, Thing b, const Place& place);

  // ---- lambdas and calls ----

  Thing lambda(const Expression& expression);

  /// Checks a lambda by running it on placeholders, so that unused lambdas are checked, too.
  void check(const Thing& lambda, const Place& place);

  enum class Captures : std::uint8_t { kNone, kAll };

  /// Runs a body with its parameters, in a scope that begins after the current variables.
  Thing apply(const std::vector<ast::Parameter>& parameters, const ast::Type* result,
              const ast::Block& body, const std::vector<Thing>& arguments, std::size_t function,
              std::size_t ceiling, Captures captures, const Place& called, const Place& defined);

  Type scalar_type_of_result(const ast::Type& result);

  Thing apply(const Thing& lambda, const std::vector<Thing>& arguments, const Place& called);

  Thing call_helper(const ast::Function& helper, const std::vector<Thing>& arguments,
                    const Place& called);

  Thing call(const Expression& expression);

  // ---- operators ----

  void require_arguments(const Expression& call, std::size_t count, std::string_view form);

  void require_program_scope(const Expression& call);

  Thing array(const Expression& operand);

  Thing function(const Expression& operand);

  Thing range(const Expression& call);

  Thing map(const Expression& call);

  /// Runs apply() with random numbers drawn per element of a domain.
  Thing apply_over(int domain, const Thing& lambda, const std::vector<Thing>& arguments,
                   const Place& called);

  Thing filter(const Expression& call);

  Thing largest(const Expression& call);

  Thing sort(const Expression& call);

  /// True if an order's lambda computes x > y, false if it computes x < y; throws otherwise.
  bool is_descending(const Expression& operand, const Thing& from);

  Thing sample(const Expression& call);

  /// Whole number in 0 … width - 1, made from `draw`, which is random in [0, 1).
  NodeId whole_below(NodeId width, NodeId draw);

  /// Random numbers in [0, 1) of this call, one per element of a domain.
  NodeId draw_site(const Expression& call, int domain);

  Thing gather(const Expression& call);

  Thing scatter(const Expression& call);

  Thing clear(const Expression& call);

  void require_encoder(const Expression& call);

  /// Adds a domain, or returns an equal one.
  int domain(const Domain& made);

  /// Makes of `value`, which belongs to the source's elements, a value of the elements of `domain`.
  NodeId kept(int domain, NodeId value);

  NodeId at(const Thing& array, NodeId index);

  NodeId length(int domain);

  /// Evaluates an operand that must be a scalar int.
  NodeId whole_number(const Expression& operand);

  /// Evaluates an operand that must be an array of ints.
  Thing indices(const Expression& operand);

  /// Makes the program a sparsifier or array program instead of a quantiser; the first call's
  /// reason becomes a note. Throws in a program with blocks.
  void be_general(const Place& place, const std::string& why);

  /// Throws the error for a construct that a program with blocks cannot contain.
  [[noreturn]] static void refuse_beside_blocks(const Place& place, const std::string& why);

  Thing reduce(const Expression& call);

  /// Kind of the reduction by a lambda that returns `body`, a value of kFirst and kSecond.
  ReductionKind reduction_kind(NodeId body);

  void finish(Reduction& reduction, const Type& type, const Expression& call);

  NodeId add(const Reduction& reduction);

  /// Checks that lanes can compute an element's value in a quantiser, and that the value does not
  /// depend on the element's index. Otherwise calls be_general(), with the place of the first
  /// expression that lanes cannot compute, or with `place` if that is unknown.
  void expect_element_code(NodeId node, const Place& place);

  /// Reason why 32-bit lanes cannot compute an element's value correctly from its arguments, and
  /// what to write instead; empty if they can. Whole numbers are modulo 2^32 on lanes:
  /// negative ones can be added, chosen or converted to floats, but comparisons and clamping take
  /// every operand as unsigned, including scalars of the slice.
  std::string lanes_lack(NodeId id) const;

  Thing on_floats(const Expression& call, Op op);
  Thing floor(const Expression& call);
  Thing ceil(const Expression& call);
  Thing abs(const Expression& call);
  Thing sqrt(const Expression& call);

  Thing of_two(const Expression& call, Op op);
  Thing min(const Expression& call);
  Thing max(const Expression& call);

  Thing random(const Expression& call);

  bool is_number(NodeId node, double value);

  Thing bits(const Expression& call);
  Thing float_of_bits(const Expression& call);

  // ---- blocks: elaborate_blocks.cpp ----

  /// Evaluates the size of a block, and makes the program work on blocks of that size.
  NodeId block_size(const Expression& operand);

  /// Evaluates reduce(a, block, initial, f): one number per block.
  Thing reduce_blocks(const Expression& call);

  Thing spread(const Expression& call);

  Thing hadamard(const Expression& call);

  /// True if a domain is that of blocks, in the encoder or in the decoder.
  bool is_of_blocks(int domain) const;

  /// Checks the message of a program with blocks, whose last array becomes the code of elements.
  void take_blocks(const std::vector<const Expression*>& arrays);

  /// Checks the rules that hold for a program with blocks as a whole.
  void check_blocks();

  /// True if `value` depends on a leaf of kind `leaf`.
  bool is_made_of(NodeId value, Op leaf);

  Thing not_here(const Expression& call);

  using Operator = Thing (Elaborator::*)(const Expression&);
  const std::map<std::string, Operator> kOperators = {{"range", &Elaborator::range},
                                                      {"map", &Elaborator::map},
                                                      {"reduce", &Elaborator::reduce},
                                                      {"filter", &Elaborator::filter},
                                                      {"largest", &Elaborator::largest},
                                                      {"sort", &Elaborator::sort},
                                                      {"sample", &Elaborator::sample},
                                                      {"gather", &Elaborator::gather},
                                                      {"scatter", &Elaborator::scatter},
                                                      {"clear", &Elaborator::clear},
                                                      {"floor", &Elaborator::floor},
                                                      {"ceil", &Elaborator::ceil},
                                                      {"abs", &Elaborator::abs},
                                                      {"sqrt", &Elaborator::sqrt},
                                                      {"min", &Elaborator::min},
                                                      {"max", &Elaborator::max},
                                                      {"random", &Elaborator::random},
                                                      {"bits", &Elaborator::bits},
                                                      {"float_of_bits", &Elaborator::float_of_bits},
                                                      {"spread", &Elaborator::spread},
                                                      {"hadamard", &Elaborator::hadamard},
                                                      {"concat", &Elaborator::not_here},
                                                      {"extract", &Elaborator::not_here}};

  const Source* const first_;
  std::vector<ast::File> files_;
  const ast::Function* encoder_ = nullptr;
  const ast::Function* decoder_ = nullptr;
  std::set<std::string> names_;
  std::map<std::string, const ast::Function*> helpers_;
  std::vector<const ast::Function*> helpers_in_order_;
  std::vector<const ast::Function*> running_;

  Program program_;
  Notes notes_;
  std::vector<Variable> variables_;
  std::set<std::size_t> locked_;  ///< variables that a lambda reads: they cannot change any more
  std::map<std::pair<const Expression*, std::size_t>, std::int64_t> sites_;
  std::size_t path_ = 0;  ///< hash of the calls that led here; each path has its own draws

  Role role_ = Role::kHelper;
  std::string gradient_, message_;
  bool reads_gradient_ = false;  ///< true once the encoder has read the gradient
  Scope scope_ = Scope::kLambda;
  std::size_t floor_ = 0;    ///< variables before it belong to outer scopes
  std::size_t ceiling_ = 0;  ///< variables before it are visible even if they belong to outer
                             ///< scopes
  std::size_t function_ = 0, functions_ = 0;
  Captures captures_ = Captures::kNone;
  int domain_ = 0;                ///< domain that the current lambda runs over
  std::map<int, int> extracted_;  ///< decoder's domain for a domain of the encoder
  const Type* result_type_ = nullptr;
  NodeId unrotated_ = -1;  ///< decoder: the array that hadamard rotates
  int steps_ = 0, calls_ = 0;
  struct General {
    Place place;
    std::string why;
  };
  std::optional<General> general_;  ///< reason why the program is not a quantiser
  std::map<NodeId, Place> places_;  ///< place of the first expression with each value
};

}  // namespace hipress::compll
