#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/compll/source.hpp"

/// Abstract syntax tree of a program: made by the parser, read by the elaborator (elaborate.hpp).
namespace hipress::compll::ast {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Block = std::vector<Statement>;

enum class TypeName : std::uint8_t { kVoid, kBool, kInt, kUint8, kUint, kFloat, kLambda };

struct Type {
  TypeName name = TypeName::kVoid;
  bool array = false;
  std::shared_ptr<Expression> bits;  ///< bits of uint<bits>
  Place place;
};

struct Parameter {
  Type type;
  std::string name;
  Place place;
  ExpressionPtr value, least, most;  ///< `= value in [least, most]`, if given
  bool own = false;                  ///< `own type name …`
};

/// `[&](float a) -> float { … }`
struct Lambda {
  bool captures = true;
  std::vector<Parameter> parameters;
  std::optional<Type> result;
  Block body;
  Place place;
};

enum class ExpressionKind : std::uint8_t {
  kInteger,
  kReal,
  kBoolean,
  kName,
  kUnary,    ///< op, operands[0]
  kBinary,   ///< op, operands[0], operands[1]
  kChoice,   ///< operands[0] ? operands[1] : operands[2]
  kCall,     ///< name(operands…) or name<type>(operands…)
  kCast,     ///< type(operands[0])
  kElement,  ///< operands[0][operands[1]]
  kSize,     ///< operands[0].size
  kLambda,
};

struct Expression {
  ExpressionKind kind;
  Place place;
  std::string name;  ///< name of a kName or kCall; operator of kUnary and kBinary
  std::int64_t integer = 0;
  double real = 0;
  std::vector<ExpressionPtr> operands;
  int height = 0;  ///< height of the tree below, including lambdas
  Type type;       ///< target of a cast, or argument in name<type>(…)
  std::shared_ptr<Lambda> lambda;
};

enum class StatementKind : std::uint8_t {
  kDeclare,   ///< type name [= value]
  kFeedback,  ///< error_feedback name
  kState,     ///< state type name
  kAssign,    ///< name op value, op one of = += -= *= /=
  kIf,
  kReturn,
  kCall,  ///< value
  kBlock,
};

struct Statement {
  StatementKind kind;
  Place place;
  Type type;
  std::string name;
  std::string op;
  ExpressionPtr value;  ///< initial value, assigned value, condition, returned value, call
  Block body, otherwise;
};

struct Function {
  Type result;
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  Place place;
};

struct File {
  std::vector<Function> functions;
};

}  // namespace hipress::compll::ast
