// Selectors and windows: what a rule looks at, and how much of it.
#include <cmath>
#include <utility>

#include "rules/declared/token_stream.h"

namespace tocsin::rules::declared {
namespace {

class SelectorParser : public TokenStream {
 public:
  using TokenStream::TokenStream;

  Selector selector() {
    Selector out;
    const Token source = take(Token::Kind::name, "a source: " + std::string(kSources));
    const auto names =
        std::vector<std::string>{"tensor", "collection", "metric", "system", "span", "step"};
    std::size_t which = 0;
    while (which < names.size() && names[which] != source.text) ++which;
    if (which == names.size()) {
      fail(source.at, "unknown source " + source.text + suggestion(source.text, names) +
                          "; expected " + kSources);
      return out;
    }
    out.source = static_cast<Selector::Source>(which);
    expect("(");
    if (out.source != Selector::Source::step) {
      const Token argument = take(Token::Kind::text, "a text in quotes");
      out.argument = argument.text;
      out.argument_at = argument.at + 1 + shift_;
      if (out.argument.empty()) fail(argument.at, "expected a text that is not empty");
    }
    expect(")");
    if (!problem_ && symbol("{")) {
      do {
        out.matchers.push_back(matcher());
      } while (!problem_ && symbol(","));
      expect("}");
    }
    end();
    return out;
  }

  Window window() {
    Window out;
    const Token first = take(Token::Kind::name, "last, every, session or since start");
    if (first.text == "since") {
      const Token start = take(Token::Kind::name, "start");
      if (start.text != "start") fail(start.at, "expected start, found " + found(start));
      out.kind = Window::Kind::start;
    } else if (first.text == "last" || first.text == "every" || first.text == "session") {
      out.kind = first.text == "last"    ? Window::Kind::last
                 : first.text == "every" ? Window::Kind::every
                                         : Window::Kind::session;
      out.at = peek().at + shift_;
      out.size = size(out.kind != Window::Kind::session);
      if (out.kind == Window::Kind::last && !problem_ && word("every")) {
        const std::size_t at = peek().at;
        out.hop = size(true);
        if (!problem_ && out.hop->steps != out.size.steps) {
          fail(at, "a window of steps hops by steps, one of time by time");
        }
      }
    } else {
      fail(first.at, "unknown window " + first.text +
                         suggestion(first.text, {"last", "every", "session", "since"}) +
                         "; expected last, every, session or since start");
    }
    end();
    return out;
  }

  Size size(bool steps_allowed) {
    const Token number =
        take(Token::Kind::number, steps_allowed ? "a size: 50 steps, 30s" : "a duration: 30s");
    const Token unit =
        take(Token::Kind::name, steps_allowed ? "steps or a unit of time" : "a unit of time");
    Size out;
    if (problem_) return out;
    if (unit.text == "step" || unit.text == "steps") {
      if (!steps_allowed) fail(unit.at, "expected a duration: 30s");
      if (!number.whole || number.number < 1 || number.number > 1e9) {
        fail(number.at, "expected a whole number of steps from 1 to 1000000000");
        return out;
      }
      out.amount = static_cast<std::int64_t>(number.number);
      return out;
    }
    const auto seconds = in_base_unit(number.number, unit.text);
    if (!seconds || unit.text.ends_with("iB")) {
      fail(unit.at, "unknown unit " + unit.text +
                        suggestion(unit.text, {"step", "steps", "ns", "us", "ms"}) +
                        "; expected steps, ns, us, ms, s, m or h");
      return out;
    }
    if (!(*seconds >= 1e-9 && *seconds <= 1e9)) {
      fail(number.at, "expected a duration from 1ns to 1000000000s");
      return out;
    }
    out.steps = false;
    out.amount = static_cast<std::int64_t>(std::llround(*seconds * 1e9));
    return out;
  }

 private:
  static constexpr const char* kSources =
      "tensor(\"…\"), collection(\"…\"), metric(\"…\"), system(\"…\"), span(\"…\") or step()";

  Matcher matcher() {
    Matcher out;
    const Token name = take(Token::Kind::name, "the name of a label");
    out.name = name.text;
    out.at = name.at + shift_;
    const Token op = peek();
    for (const char* one : {"=", "!=", "=~", "!~"}) {
      if (op.kind == Token::Kind::symbol && op.text == one) out.op = one;
    }
    if (out.op.empty()) {
      fail(op.at, "expected =, !=, =~ or !~, found " + found(op));
      return out;
    }
    ++next_;
    const Token value = take(Token::Kind::text, "a text in quotes");
    out.value = value.text;
    out.value_at = value.at + 1 + shift_;
    return out;
  }
};

}  // namespace

Parsed<Selector> parse_selector(std::string_view text) {
  SelectorParser parser(text);
  Selector selector = parser.selector();
  return {std::move(selector), parser.problem()};
}

Parsed<Window> parse_window(std::string_view text) {
  SelectorParser parser(text);
  const Window window = parser.window();
  return {window, parser.problem()};
}

Parsed<Size> parse_size(std::string_view text) {
  SelectorParser parser(text);
  const Size size = parser.size(true);
  parser.end();
  return {size, parser.problem()};
}

}  // namespace tocsin::rules::declared
