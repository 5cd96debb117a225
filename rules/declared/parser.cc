// Expressions: recursive descent, one function per line of the grammar.
#include <utility>

#include "rules/declared/token_stream.h"

namespace tocsin::rules::declared {
namespace {

class Parser : public TokenStream {
 public:
  using TokenStream::TokenStream;

  // expr = and { "or" and }
  Node expression() {
    const Deeper deeper(*this);
    Node left = conjunction();
    while (!problem_ && word("or")) left = joined(std::move(left), "or", conjunction());
    return left;
  }

 private:
  static constexpr int kMostOperators = 256;  // a chain of them is a tree as deep

  /// Refuses what is nested too deeply, so that no text exhausts the stack.
  struct Deeper {
    explicit Deeper(Parser& whose) : parser(whose) {
      if (++parser.depth_ > kDeepest) {
        parser.fail(parser.peek().at, "nested deeper than " + std::to_string(kDeepest) + " parts");
      }
    }
    ~Deeper() { --parser.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Parser& parser;
  };

  // and = not { "and" not }
  Node conjunction() {
    Node left = inversion();
    while (!problem_ && word("and")) left = joined(std::move(left), "and", inversion());
    return left;
  }

  // not = [ "not" ] cmp
  Node inversion() {
    const std::size_t at = peek().at;
    if (!word("not")) return comparison();
    return single(Node::Kind::invert, at, comparison());
  }

  // cmp = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
  Node comparison() {
    Node left = sum();
    for (const char* op : {"<", "<=", ">", ">=", "==", "!="}) {
      if (problem_ || !symbol(op)) continue;
      Node out = joined(std::move(left), op, sum());
      for (const char* again : {"<", "<=", ">", ">=", "==", "!="}) {
        if (!problem_ && peek().kind == Token::Kind::symbol && peek().text == again) {
          fail(peek().at, "comparisons do not chain: write a < b and b < c");
        }
      }
      return out;
    }
    if (!problem_ && peek().kind == Token::Kind::symbol && peek().text == "=") {
      fail(peek().at, "expected == to compare, found '='");
    }
    return left;
  }

  // sum = product { ("+" | "-") product }
  Node sum() {
    Node left = product();
    while (!problem_) {
      if (symbol("+")) {
        left = joined(std::move(left), "+", product());
      } else if (symbol("-")) {
        left = joined(std::move(left), "-", product());
      } else {
        break;
      }
    }
    return left;
  }

  // product = unary { ("*" | "/") unary }
  Node product() {
    Node left = unary();
    while (!problem_) {
      if (symbol("*")) {
        left = joined(std::move(left), "*", unary());
      } else if (symbol("/")) {
        left = joined(std::move(left), "/", unary());
      } else {
        break;
      }
    }
    return left;
  }

  // unary = [ "-" ] primary
  Node unary() {
    const std::size_t at = peek().at;
    if (!symbol("-")) return primary();
    return single(Node::Kind::negate, at, primary());
  }

  Node primary() {
    const Token token = peek();
    if (token.kind == Token::Kind::number) return number();
    if (symbol("(")) {
      Node inner = expression();
      expect(")");
      inner.at = token.at + shift_;
      inner.end = behind();
      return inner;
    }
    if (token.kind == Token::Kind::text) {
      ++next_;
      return leaf(Node::Kind::text, token);
    }
    if (token.kind != Token::Kind::name || reserved(token.text)) {
      fail(token.at, "expected a number, a name, a function or '(', found " + found(token));
      return {};
    }
    ++next_;
    if (token.text == "true" || token.text == "false") {
      Node out = leaf(Node::Kind::boolean, token);
      out.number = token.text == "true" ? 1 : 0;
      return out;
    }
    if (symbol("(")) return call(token);
    Node out = leaf(Node::Kind::name, token);
    if (symbol(".")) {
      const Token member = take(Token::Kind::name, "a name behind '.'");
      out.owner = std::move(out.text);
      out.text = member.text;
      out.end = behind();
    }
    return out;
  }

  Node number() {
    const Token token = tokens_[next_++];
    Node out = leaf(Node::Kind::number, token);
    out.number = token.number;
    const Token& unit = peek();
    const bool percent = unit.kind == Token::Kind::symbol && unit.text == "%";
    if (!percent && (unit.kind != Token::Kind::name || reserved(unit.text))) return out;
    // `fired("a", 50 steps)`: steps are counted, not converted.
    if (unit.text == "step" || unit.text == "steps") {
      ++next_;
      out.text = "steps";
      out.end = behind();
      return out;
    }
    const auto base = in_base_unit(out.number, unit.text);
    if (!base) {
      fail(unit.at, unknown_unit(unit.text));
      return out;
    }
    ++next_;
    out.text = unit.text;
    out.number = *base;
    out.end = behind();
    return out;
  }

  // Behind a number a word may be its unit as well as an operator.
  static std::string unknown_unit(const std::string& text) {
    const std::string meant = operator_near(text);
    if (!meant.empty()) return "unexpected the name " + text + "; did you mean " + meant + "?";
    return "unknown unit " + text + suggestion(text, {"KiB", "MiB", "GiB", "ns", "us", "ms"}) +
           "; expected %, ns, us, ms, s, m, h, KiB, MiB or GiB";
  }

  Node call(const Token& function) {
    Node out = leaf(Node::Kind::call, function);
    if (!symbol(")")) {
      do {
        out.parts.push_back(expression());
      } while (!problem_ && symbol(","));
      expect(")");
    }
    out.end = behind();
    return out;
  }

  [[nodiscard]] Node leaf(Node::Kind kind, const Token& token) const {
    Node out;
    out.kind = kind;
    out.at = token.at + shift_;
    out.end = token.end + shift_;
    out.text = token.text;
    return out;
  }
  [[nodiscard]] Node single(Node::Kind kind, std::size_t at, Node part) const {
    Node out;
    out.kind = kind;
    out.at = at + shift_;
    out.end = behind();
    out.parts.push_back(std::move(part));
    return out;
  }
  [[nodiscard]] Node joined(Node left, const char* op, Node right) {
    if (++joined_ > kMostOperators) {
      fail(left.at - shift_, "more than " + std::to_string(kMostOperators) + " operators");
    }
    Node out;
    out.kind = Node::Kind::binary;
    out.at = left.at;
    out.end = behind();
    out.text = op;
    out.parts.push_back(std::move(left));
    out.parts.push_back(std::move(right));
    return out;
  }

  int depth_ = 0;
  int joined_ = 0;
};

}  // namespace

Parsed<Node> parse_expression(std::string_view text) {
  Parser parser(text);
  Node node = parser.expression();
  parser.end();
  return {std::move(node), parser.problem()};
}

Parsed<Template> parse_template(std::string_view text) {
  Parsed<Template> out;
  out.value.texts.emplace_back();
  for (std::size_t at = 0; at < text.size() && !out.problem;) {
    const char c = text[at];
    const bool twice = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && twice) {
      out.value.texts.back() += c;
      at += 2;
    } else if (c == '}') {
      out.problem = Problem{at, "this '}' closes nothing; write }} for a brace"};
    } else if (c == '{') {
      const std::size_t close = text.find('}', at);
      if (close == std::string_view::npos) {
        out.problem = Problem{at, "this '{' is not closed; write {{ for a brace"};
        break;
      }
      Parser parser(text.substr(at + 1, close - at - 1), at + 1);
      Node node = parser.expression();
      parser.end();
      out.problem = parser.problem();
      out.value.expressions.push_back(std::move(node));
      out.value.texts.emplace_back();
      at = close + 1;
    } else {
      out.value.texts.back() += c;
      ++at;
    }
  }
  return out;
}

}  // namespace tocsin::rules::declared
