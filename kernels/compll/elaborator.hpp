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

/// The inside of elaborate(): one object that runs a program on values. elaborate.cpp: functions,
/// names, types; elaborate_statements.cpp: statements, messages; elaborate_expressions.cpp:
/// expressions, lambdas; elaborate_operators.cpp, elaborate_blocks.cpp: operators;
/// elaborate_lanes.cpp: what a quantiser can do.
namespace hipress::compll {

using ast::Expression;
using ast::ExpressionKind;
using ast::Statement;
using ast::StatementKind;
using ast::TypeName;

/// In magnitude, whole numbers that are summed on lanes: WholeSum's limit.
constexpr std::int64_t kMaxWholeSum = 1 << 20;

/// The static type of a scalar or of an array's elements.
struct Type {
  TypeName name = TypeName::kVoid;
  NodeId bits = -1;  ///< of uint8 and uint<bits>

  ScalarKind kind() const {
    return name == TypeName::kFloat  ? ScalarKind::kFloat
           : name == TypeName::kBool ? ScalarKind::kBool
                                     : ScalarKind::kInt;
  }
  bool clamps() const { return name == TypeName::kUint8 || name == TypeName::kUint; }
};

enum class ThingKind : std::uint8_t { kUnset, kScalar, kArray, kLambda, kMessage };

/// What a name or an expression stands for.
struct Thing {
  ThingKind kind = ThingKind::kUnset;
  Type type;
  NodeId node = -1;  ///< the scalar, or the array's element at the index
  int domain = 0;    ///< of an array
  const ast::Lambda* lambda = nullptr;
  std::size_t scope = 0;  ///< of a lambda: variables known where it was written
};

struct Variable {
  std::string name;
  ast::Type declared;
  Type type;
  Thing value;
  Place place;
  std::size_t function = 0;  ///< which call it belongs to: lambdas of another do not see it
};

/// What executing statements leaves besides variables.
struct Flow {
  NodeId returned = -1;  ///< bool: whether a return has been met; -1: not at all
  Thing result;
};

enum class Role : std::uint8_t { kHelper, kEncoder, kDecoder };

/// "float", for messages.
std::string name_of(TypeName name);

class Elaborator {
 public:
  explicit Elaborator(const std::vector<const Source*>& sources);

  Elaborated run();

 private:
  // ---- functions and parameters ----

  void collect();

  static std::string base_name(const ast::Function& function);

  /// Every helper must be sound by itself, called or not.
  void check_helper(const ast::Function& helper);

  /// A parameter's default or end of its range: a number.
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

  /// A function sees its own variables, a lambda those declared before it as well.
  bool visible(std::size_t index) const;

  static std::string near(std::string_view word, const std::vector<std::string_view>& known);

  Variable& find(const std::string& name, const Place& place);

  // ---- types ----

  Type scalar_type(const ast::Type& type);

  /// A value as one of a type, where that needs no permission.
  NodeId converted(NodeId node, const Type& type);

  /// The implicit conversions of the language.
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

  /// What is kept stays finite for ever: a value held within the range of floats.
  NodeId saturated(NodeId node);

  /// Whether an array is one that is kept between steps.
  bool is_state(const std::string& name) const;

  void run_assignment(const Statement& statement);

  void assign_array(const Statement& statement, std::size_t index);

  void run_if(const Statement& statement, Flow& flow);

  void merge(NodeId condition, const Flow& yes, const Flow& no, Flow& flow, const Place& place);

  /// condition ? yes : no, in the type that holds both.
  Thing common(const Thing& yes, const Thing& no, NodeId condition, const Place& place);

  void run_return(const Statement& statement, Flow& flow);

  void run_call(const Statement& statement);

  // ---- messages ----

  void assign_message(const Statement& statement);

  /// One array of a message.
  Part part(const Thing& array, const Expression& operand);

  /// Whether the message is one code per element, as far as it is known; then it is the encoder's.
  bool take_code(const Part& part, const Expression& operand);

  /// A code has 1 to 8 bits. A parameter that is their number gets that range.
  bool bound_bits(NodeId bits, std::int64_t most, const Expression& operand);

  /// The most elements that a domain can have must follow from the gradient's and the parameters.
  void require_bound(int domain, const Place& place);

  Field field(const Type& type, const Expression& operand);

  void extract(const Expression& call);

  Thing extract_array(const Type& type, const Expression& operand);

  // ---- expressions ----

  Thing scalar(const Expression& expression);

  Thing made(Type type, NodeId node);

  /// An expression's value; remembers where it stands.
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

  /// Runs a lambda on placeholders, so that it is sound by itself, used or not.
  void check(const Thing& lambda, const Place& place);

  enum class Captures : std::uint8_t { kNone, kAll };

  /// Runs a body with its parameters, in a scope that begins after the variables known now.
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

  /// apply(), where random numbers are those of a domain's elements.
  Thing apply_over(int domain, const Thing& lambda, const std::vector<Thing>& arguments,
                   const Place& called);

  Thing filter(const Expression& call);

  Thing largest(const Expression& call);

  Thing sort(const Expression& call);

  /// Whether an order is x > y rather than x < y.
  bool is_descending(const Expression& operand, const Thing& from);

  Thing sample(const Expression& call);

  /// A random number of 0 … width - 1.
  NodeId whole_below(NodeId width, NodeId draw);

  /// The draws of one place in the program.
  NodeId draw_site(const Expression& call, int domain);

  Thing gather(const Expression& call);

  Thing scatter(const Expression& call);

  Thing clear(const Expression& call);

  void require_encoder(const Expression& call);

  /// A new domain, or the one that is equal.
  int domain(const Domain& made);

  /// What a filtered domain's elements have of a value of its source.
  NodeId kept(int domain, NodeId value);

  /// The array's element at an index.
  NodeId at(const Thing& array, NodeId index);

  /// Elements of a domain.
  NodeId length(int domain);

  /// A scalar int.
  NodeId whole_number(const Expression& operand);

  /// An array of ints.
  Thing indices(const Expression& operand);

  /// From here on the program is one of arrays, no quantiser; says why, once.
  void be_general(const Place& place, const std::string& why);

  /// Throws the error for a part that a program with blocks cannot have.
  [[noreturn]] static void refuse_beside_blocks(const Place& place, const std::string& why);

  Thing reduce(const Expression& call);

  /// Which reduction a lambda of kFirst and kSecond is.
  ReductionKind reduction_kind(NodeId body);

  void finish(Reduction& reduction, const Type& type, const Expression& call);

  NodeId add(const Reduction& reduction);

  /// A quantiser's code that runs for every element reads elements, not their numbers. Anything
  /// else makes the program general; the reason then names the first expression that lanes cannot
  /// compute, where it stands, or else at `place`.
  void expect_element_code(NodeId node, const Place& place);

  /// The reason why 32-bit lanes do not compute an element's value correctly from its arguments,
  /// and what they would; empty if they do. Whole numbers are modulo 2^32 there: negative ones can
  /// be added, chosen or converted to floats, but comparisons and clamping take every operand, also
  /// a number of the slice, as unsigned.
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

  /// The number of a block's elements; from here on the program works on blocks of that size.
  NodeId block_size(const Expression& operand);

  /// reduce(a, block, initial, f): a number for every block.
  Thing reduce_blocks(const Expression& call);

  Thing spread(const Expression& call);

  Thing hadamard(const Expression& call);

  /// Whether a domain is that of blocks, in the encoder or in the decoder.
  bool is_of_blocks(int domain) const;

  /// The message of a program of blocks: numbers for every block, then a code for every element.
  void take_blocks(const std::vector<const Expression*>& arrays);

  /// What the whole of a program of blocks must keep to.
  void check_blocks();

  /// Whether a value is made of another.
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
  std::set<std::size_t> locked_;  ///< variables that a lambda has read
  std::map<std::pair<const Expression*, std::size_t>, std::int64_t> sites_;
  std::size_t path_ = 0;  ///< of the calls that lead here: each draws numbers of its own

  Role role_ = Role::kHelper;
  std::string gradient_, message_;
  bool reads_gradient_ = false;  ///< an encoder's, so far
  Scope scope_ = Scope::kLambda;
  std::size_t floor_ = 0;    ///< variables before it belong to somebody outside
  std::size_t ceiling_ = 0;  ///< of those, the ones before this are seen nevertheless
  std::size_t function_ = 0, functions_ = 0;
  Captures captures_ = Captures::kNone;
  int domain_ = 0;                ///< that a lambda runs over
  std::map<int, int> extracted_;  ///< the decoder's domain for one of the encoder's
  const Type* result_type_ = nullptr;
  NodeId unrotated_ = -1;  ///< in a decoder: what hadamard was given
  int steps_ = 0, calls_ = 0;
  struct General {
    Place place;
    std::string why;
  };
  std::optional<General> general_;  ///< why the program is no quantiser
  std::map<NodeId, Place> places_;  ///< of the expressions that came to a value, the first each
};

}  // namespace hipress::compll
