#include "kernels/compll/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "io/error.hpp"
#include "kernels/compll/lexer.hpp"

namespace hipress::compll {

namespace {

using namespace ast;

constexpr int kDeepest = 200;
constexpr int kTallest = 1000;

const std::map<std::string_view, TypeName> kTypeNames = {
    {"void", TypeName::kVoid},         {"bool", TypeName::kBool}, {"int", TypeName::kInt},
    {"uint8", TypeName::kUint8},       {"uint", TypeName::kUint}, {"float", TypeName::kFloat},
    {"lambda_func", TypeName::kLambda}};

/// Binary operators by precedence, lowest first.
const std::vector<std::vector<std::string_view>> kBinary = {
    {"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="},
    {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};

class Parser {
 public:
  explicit Parser(const Source& source) : tokens_(tokenize(source)) {}

  File run() {
    File file;
    while (peek().kind != TokenKind::kEnd) file.functions.push_back(function());
    return file;
  }

 private:
  /// Limits the depth of the parser's recursion.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) {
        throw CompileError(parser_.peek().place,
                           fmt::format("nested more than {} deep; name parts of it", kDeepest));
      }
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  // ---- tokens ----

  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool sees(std::string_view text, std::size_t ahead = 0) const {
    return peek(ahead).kind != TokenKind::kEnd && peek(ahead).text == text;
  }
  Token take() {
    const Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool accept(std::string_view text) {
    if (!sees(text)) return false;
    take();
    return true;
  }
  Token expect(std::string_view text, std::string_view why) {
    if (sees(text)) return take();
    throw unexpected(fmt::format("'{}' {}", text, why));
  }
  CompileError unexpected(std::string_view wanted) const {
    return {peek().place,
            peek().kind == TokenKind::kEnd
                ? fmt::format("the program ends where {} is expected", wanted)
                : fmt::format("{} stands where {} is expected", io::quote(peek().text), wanted)};
  }
  Token name(std::string_view what) {
    if (peek().kind != TokenKind::kName || kTypeNames.contains(peek().text)) {
      throw unexpected(what);
    }
    return take();
  }
  static Place from(const Place& first, const Place& last) {
    return {first.source, first.begin, last.begin + last.length - first.begin};
  }
  const Place& last_place() const { return tokens_[at_ == 0 ? 0 : at_ - 1].place; }

  // ---- types and functions ----

  bool sees_type() const {
    return peek().kind == TokenKind::kName && kTypeNames.contains(peek().text);
  }

  Type type() {
    if (!sees_type()) throw unexpected("a type (float, int, uint8, uint<bits>, bool)");
    const Token token = take();
    Type type{.name = kTypeNames.at(token.text), .array = false, .bits = {}, .place = token.place};
    if (type.name == TypeName::kUint) {
      expect("<", "with the number of bits (uint<2>)");
      type.bits = binary(kBinary.size() - 3);  // no comparison: '>' ends the bits
      if (!sees(">")) throw unexpected("'>' after the number of bits");
      take();
    }
    if (accept("*")) type.array = true;
    type.place = from(token.place, last_place());
    return type;
  }

  Parameter parameter() {
    Parameter parameter;
    parameter.own = sees("own") && kTypeNames.contains(peek(1).text) && accept("own");
    parameter.type = type();
    const Token token = name("a parameter's name");
    parameter.name = token.text;
    parameter.place = token.place;
    if (accept("=")) {
      parameter.value = expression();
      if (accept("in")) {
        expect("[", "before the range");
        parameter.least = expression();
        expect(",", "between the ends of the range");
        parameter.most = expression();
        expect("]", "after the range");
      }
    }
    return parameter;
  }

  std::vector<Parameter> parameters() {
    expect("(", "before the parameters");
    std::vector<Parameter> list;
    if (accept(")")) return list;
    do {
      list.push_back(parameter());
    } while (accept(","));
    expect(")", "after the parameters");
    return list;
  }

  Function function() {
    Function function;
    function.result = type();
    const Token token = name("the function's name");
    function.name = token.text;
    function.place = token.place;
    function.parameters = parameters();
    function.body = block();
    return function;
  }

  std::shared_ptr<Lambda> lambda() {
    auto lambda = std::make_shared<Lambda>();
    lambda->place = expect("[", "at the beginning of a lambda").place;
    lambda->captures = accept("&") || accept("=");
    expect("]", "after a lambda's capture ([&] captures all)");
    lambda->parameters = parameters();
    if (accept("->")) lambda->result = type();
    lambda->place = from(lambda->place, last_place());
    lambda->body = block();
    return lambda;
  }

  // ---- statements ----

  Block block() {
    expect("{", "before the statements");
    Block block;
    while (!sees("}")) {
      if (peek().kind == TokenKind::kEnd) throw unexpected("'}' after the statements");
      statement(block);
    }
    take();
    return block;
  }

  Block block_or_statement() {
    if (sees("{")) return block();
    Block block;
    statement(block);
    return block;
  }

  void statement(Block& into) {
    const Depth depth(*this);
    if (accept(";")) return;
    Statement made{.kind = StatementKind::kBlock,
                   .place = peek().place,
                   .type = {},
                   .name = {},
                   .op = {},
                   .value = {},
                   .body = {},
                   .otherwise = {}};
    if (sees("{")) {
      made.body = block();
    } else if (sees("if")) {
      take();
      made.kind = StatementKind::kIf;
      expect("(", "before the condition");
      made.value = expression();
      expect(")", "after the condition");
      made.body = block_or_statement();
      if (accept("else")) made.otherwise = block_or_statement();
    } else if (sees("return")) {
      take();
      made.kind = StatementKind::kReturn;
      if (!sees(";")) made.value = expression();
      expect(";", "after the returned value");
    } else if (sees("error_feedback") && peek(1).kind == TokenKind::kName) {
      take();
      made.kind = StatementKind::kFeedback;
      named(made);
      expect(";", "after the name of the gradient");
    } else if (sees("state") && kTypeNames.contains(peek(1).text)) {
      take();
      made.kind = StatementKind::kState;
      made.type = type();
      named(made);
      expect(";", "after the name of the array, which is 0 at first");
    } else if (sees_type() && !sees("(", 1)) {
      declaration(made);
    } else {
      assignment_or_call(made);
    }
    into.push_back(std::move(made));
  }

  void named(Statement& statement) {
    const Token token = name("a name");
    statement.name = token.text;
    statement.place = token.place;
  }

  void declaration(Statement& statement) {
    statement.kind = StatementKind::kDeclare;
    statement.type = type();
    named(statement);
    if (accept("=")) statement.value = expression();
    // CompLL's programs omit the ';' after a lambda.
    const bool optional = statement.type.name == TypeName::kLambda;
    if (!accept(";") && !optional) throw unexpected("';' after the declaration");
  }

  void assignment_or_call(Statement& statement) {
    ExpressionPtr first = expression();
    for (const std::string_view op : {"=", "+=", "-=", "*=", "/="}) {
      if (!sees(op)) continue;
      if (first->kind != ExpressionKind::kName) {
        throw CompileError(first->place,
                           "only a variable can be assigned to; an array is made whole, by map or "
                           "scatter");
      }
      take();
      statement.kind = StatementKind::kAssign;
      statement.name = first->name;
      statement.place = first->place;
      statement.op = op;
      statement.value = expression();
      expect(";", "after the assigned value");
      return;
    }
    statement.kind = StatementKind::kCall;
    statement.place = first->place;
    if (first->kind != ExpressionKind::kCall) {
      throw CompileError(first->place, "this does nothing; assign it to a variable");
    }
    statement.value = std::move(first);
    expect(";", "after the call");
  }

  // ---- expressions ----

  ExpressionPtr make(ExpressionKind kind, const Place& place) {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->place = place;
    return made;
  }

  /// Adds an operand and updates the height of `of`. A chain a + b + c … is as high as it is long.
  void add(Expression& of, ExpressionPtr operand) {
    grow(of, operand->height);
    of.operands.push_back(std::move(operand));
  }
  void grow(Expression& expression, int height) {
    expression.height = std::max(expression.height, height + 1);
    tallest_ = std::max(tallest_, expression.height);
    if (expression.height > kTallest) {
      throw CompileError(expression.place,
                         fmt::format("this is built of more than {} operators one upon the other; "
                                     "name parts of it",
                                     kTallest));
    }
  }

  ExpressionPtr expression() {
    const Depth depth(*this);
    if (sees("[")) {
      auto made = make(ExpressionKind::kLambda, peek().place);
      const int before = std::exchange(tallest_, 0);
      made->lambda = lambda();
      grow(*made, std::exchange(tallest_, before));
      made->place = made->lambda->place;
      return made;
    }
    ExpressionPtr condition = binary(0);
    if (!accept("?")) return condition;
    auto choice = make(ExpressionKind::kChoice, condition->place);
    add(*choice, std::move(condition));
    add(*choice, expression());
    expect(":", "between the two values of '?'");
    add(*choice, expression());
    choice->place = from(choice->place, last_place());
    return choice;
  }

  /// Parses operators of kBinary[tightness] and of higher precedence.
  ExpressionPtr binary(std::size_t tightness) {
    if (tightness == kBinary.size()) return unary();
    ExpressionPtr left = binary(tightness + 1);
    for (;;) {
      const auto& operators = kBinary[tightness];
      const auto found = std::find_if(operators.begin(), operators.end(),
                                      [&](std::string_view op) { return sees(op); });
      if (found == operators.end()) return left;
      take();
      auto both = make(ExpressionKind::kBinary, left->place);
      both->name = *found;
      add(*both, std::move(left));
      add(*both, binary(tightness + 1));
      both->place = from(both->place, last_place());
      left = std::move(both);
    }
  }

  ExpressionPtr unary() {
    const Depth depth(*this);
    for (const std::string_view op : {"-", "!", "~", "+"}) {
      if (!sees(op)) continue;
      auto made = make(ExpressionKind::kUnary, take().place);
      made->name = op;
      add(*made, unary());
      made->place = from(made->place, last_place());
      return made;
    }
    return postfix();
  }

  ExpressionPtr postfix() {
    ExpressionPtr value = primary();
    for (;;) {
      const bool element = sees("[");
      if (!element && !sees(".")) return value;
      take();
      auto made = make(element ? ExpressionKind::kElement : ExpressionKind::kSize, value->place);
      add(*made, std::move(value));
      if (element) {
        add(*made, expression());
        expect("]", "after the index");
      } else if (!accept("size")) {
        throw unexpected("'size', which is all that an array has besides its elements,");
      }
      made->place = from(made->place, last_place());
      value = std::move(made);
    }
  }

  ExpressionPtr primary() {
    const Token& token = peek();
    if (token.kind == TokenKind::kInteger) {
      auto made = make(ExpressionKind::kInteger, token.place);
      made->integer = static_cast<std::int64_t>(take().integer);
      return made;
    }
    if (token.kind == TokenKind::kReal) {
      auto made = make(ExpressionKind::kReal, token.place);
      made->real = take().real;
      return made;
    }
    if (sees("true") || sees("false")) {
      auto made = make(ExpressionKind::kBoolean, token.place);
      made->integer = take().text == "true" ? 1 : 0;
      return made;
    }
    if (accept("(")) {
      ExpressionPtr inner = expression();
      expect(")", "after what '(' began");
      return inner;
    }
    if (sees_type()) {
      auto made = make(ExpressionKind::kCast, token.place);
      made->type = type();
      arguments(*made);
      return made;
    }
    if (token.kind != TokenKind::kName) throw unexpected("a value");
    auto made = make(ExpressionKind::kName, token.place);
    made->name = take().text;
    const bool typed = made->name == "random" && sees("<");
    if (typed) {
      take();
      made->type = type();
      expect(">", "after the type of the random numbers");
    }
    if (sees("(")) {
      made->kind = ExpressionKind::kCall;
      arguments(*made);
    } else if (typed) {
      throw unexpected("'(' before the range of the random numbers");
    }
    return made;
  }

  void arguments(Expression& call) {
    expect("(", "before the arguments");
    if (!accept(")")) {
      do {
        add(call, expression());
      } while (accept(","));
      expect(")", "after the arguments");
    }
    call.place = from(call.place, last_place());
  }

  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int tallest_ = 0;  ///< greatest height of an expression in the current lambda
};

}  // namespace

ast::File parse(const Source& source) { return Parser(source).run(); }

}  // namespace hipress::compll
