#include "rules/declared/compile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/text.h"
#include "rules/declared/formula_parts.h"
#include "rules/declared/words.h"

namespace tocsin::rules::declared {
namespace {

enum class Type : std::uint8_t { number, boolean, text };

const char* named(Type type) {
  return type == Type::number ? "a number" : type == Type::boolean ? "a bool" : "a text";
}

/// Where an expression stands, which decides what it may look at.
enum class Where : std::uint8_t {
  open,      // `when`, evidence
  argument,  // inside an aggregate: of one point
  member,    // inside across(): of one member
};

class Compiler {
 public:
  Compiler(const Draft& draft, Rule& out) : draft_(draft), out_(out) {
    out_.formula.sources.resize(draft.selected.size());
    out_.formula.window = draft.window;
    out_.selected = draft.selected;
    out_.folded = draft.folded;
    out_.formula.stepless = source_of(0) == Selector::Source::system;
  }

  void condition(const Node& node) {
    const Type type = compile(node, Where::open, out_.formula.when);
    if (type != Type::boolean) {
      fail(node.at,
           std::string("`when` must be a bool, a comparison for instance; found ") + named(type));
    }
    if (const Node* decides = comparison_in(node); decides != nullptr && !problem_) {
      out_.op = decides->text;
      for (const Node& side : decides->parts) speak(side, draft_.when);
    }
    if (source_unused() && !problem_) {
      fail(node.at, "this condition looks at nothing of " + unused_name());
    }
  }

  Sentence sentence(const Template& text) {
    Sentence out;
    out.texts = text.texts;
    for (const Node& node : text.expressions) {
      if (problem_) break;
      Sentence::Hole hole;
      const bool label =
          node.kind == Node::Kind::name && node.owner.empty() &&
          std::find(draft_.labels.begin(), draft_.labels.end(), node.text) != draft_.labels.end();
      if (label) {
        hole.label = node.text;
      } else if (node.kind == Node::Kind::call && node.text == "argmax_worker") {
        hole.label = node.text;
        argmax(node);
      } else {
        hole.number = static_cast<std::uint16_t>(out_.spoken.size());
        speak(node, draft_.evidence);
      }
      out.holes.push_back(std::move(hole));
    }
    return out;
  }

  [[nodiscard]] std::optional<Problem> problem() const { return problem_; }

 private:
  void fail(std::size_t at, std::string message) {
    if (!problem_) problem_ = Problem{at, std::move(message)};
  }
  [[nodiscard]] Selector::Source source_of(std::size_t number) const {
    return draft_.selected[number].selector.source;
  }
  [[nodiscard]] bool several() const {
    return draft_.selected.size() > 1 || !draft_.selected.front().name.empty();
  }
  [[nodiscard]] static std::string excerpt(std::string_view text, const Node& node) {
    return std::string(text.substr(node.at, node.end - node.at));
  }

  void speak(const Node& node, std::string_view text) {
    Spoken spoken{excerpt(text, node), {}};
    const Type type = compile(node, Where::open, spoken.code);
    if (type == Type::text) fail(node.at, "expected a number, found a text");
    out_.spoken.push_back(std::move(spoken));
  }

  // The first comparison of the condition that no `not` turns round: what an issue speaks of.
  static const Node* comparison_in(const Node& node) {
    if (node.kind == Node::Kind::binary) {
      if (compares(operator_named(node.text))) return &node;
      for (const Node& part : node.parts) {
        if (const Node* found = comparison_in(part)) return found;
      }
    }
    return nullptr;
  }

  [[nodiscard]] bool source_unused() const {
    return several() &&
           std::any_of(used_.begin(),
                       used_.begin() + static_cast<std::ptrdiff_t>(draft_.selected.size()),
                       [](bool used) { return !used; });
  }
  [[nodiscard]] std::string unused_name() const {
    for (std::size_t i = 0; i < draft_.selected.size(); ++i) {
      if (!used_[i]) return draft_.selected[i].name;
    }
    return {};
  }

  Type expect(const Node& node, Where where, Code& code, Type wanted) {
    const Type type = compile(node, where, code);
    if (type != wanted) {
      fail(node.at, std::string("expected ") + named(wanted) + ", found " + named(type));
    }
    return wanted;
  }

  Type compile(const Node& node, Where where, Code& code) {
    if (problem_) return Type::number;
    switch (node.kind) {
      case Node::Kind::number:
        if (node.text == "steps") fail(node.at, "steps have no place here");
        code.push_back({Op::constant, 0, node.number});
        return Type::number;
      case Node::Kind::boolean:
        code.push_back({Op::constant, 0, node.number});
        return Type::boolean;
      case Node::Kind::text:
        return Type::text;
      case Node::Kind::name:
        return name(node, where, code);
      case Node::Kind::call:
        return call(node, where, code);
      case Node::Kind::negate:
        expect(node.parts[0], where, code, Type::number);
        code.push_back({Op::negate, 0, 0});
        return Type::number;
      case Node::Kind::invert:
        expect(node.parts[0], where, code, Type::boolean);
        code.push_back({Op::invert, 0, 0});
        return Type::boolean;
      case Node::Kind::binary:
        break;
    }
    return binary(node, where, code);
  }

  Type binary(const Node& node, Where where, Code& code) {
    const Op op = operator_named(node.text);
    const bool logic = op == Op::both || op == Op::either;
    Type wanted = logic ? Type::boolean : Type::number;
    if (op == Op::equal || op == Op::not_equal) {
      wanted = compile(node.parts[0], where, code);
      if (wanted == Type::text) fail(node.parts[0].at, "texts cannot be compared here");
    } else {
      expect(node.parts[0], where, code, wanted);
    }
    expect(node.parts[1], where, code, wanted);
    code.push_back({op, 0, 0});
    return logic || compares(op) ? Type::boolean : Type::number;
  }

  // ------------------------------------------------------------------------------------- names

  std::optional<std::size_t> owner_of(const Node& node) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < draft_.selected.size(); ++i) {
      if (several() && draft_.selected[i].name == node.owner) return i;
      if (several()) names.push_back(draft_.selected[i].name);
    }
    if (!several() && node.owner.empty()) return 0;
    if (!several()) {
      fail(node.at, "there is one selection without a name: write " + node.text + " alone");
    } else if (node.owner.empty()) {
      fail(node.at, "of which selection? write " + names.front() + "." + node.text);
    } else {
      const std::string near = core::nearest(node.owner, names);
      fail(node.at,
           "unknown selection " + node.owner +
               (near.empty() ? "; known: " + listed(names) : "; did you mean " + near + "?"));
    }
    return std::nullopt;
  }

  Type name(const Node& node, Where where, Code& code) {
    const auto owner = owner_of(node);
    if (!owner) return Type::number;
    const auto field = field_named(node.text, source_of(*owner));
    if (!field) {
      fail(node.at, unknown_name(node.text, source_of(*owner)));
      return Type::number;
    }
    if (*field >= kSent) request(*field, out_.requests);
    use(*owner, node, where);
    if (where == Where::open && !draft_.folded.empty()) {
      fail(node.at, node.text + " differs between " + draft_.folded.front() +
                        "s, which `by` leaves out: fold it, across(max, " + node.text + ")");
    }
    if (where == Where::open && out_.formula.cut()) {
      fail(node.at, "this window is judged when it is over: put " + node.text +
                        " into an aggregate, last(" + node.text + ") for instance");
    }
    if (where != Where::argument && several()) {
      // Another selection's point may be the one that is judged.
      Argument argument;
      argument.code.push_back({Op::field, *field, 0});
      code.push_back(
          {Op::aggregate,
           add_aggregate(out_.formula, Kind::newest, *owner, std::move(argument), 0, false), 0});
    } else {
      code.push_back({Op::field, *field, 0});
    }
    return Type::number;
  }

  void use(std::size_t owner, const Node& node, Where where) {
    used_[owner] = true;
    if (where != Where::argument) return;
    if (argument_of_ && *argument_of_ != owner) {
      fail(node.at, "an aggregate takes values of one selection");
    }
    argument_of_ = owner;
  }

  // --------------------------------------------------------------------------------- functions

  bool arguments(const Node& node, std::size_t count, const char* form) {
    if (node.parts.size() == count) return true;
    fail(node.at, node.text + " takes " + std::to_string(count) +
                      (count == 1 ? " argument: " : " arguments: ") + form + "; found " +
                      std::to_string(node.parts.size()));
    return false;
  }

  Type call(const Node& node, Where where, Code& code) {
    if (const auto simple = simple_named(node.text)) {
      return simple_call(node, *simple, where, code);
    }
    if (node.text == "if") return choice(node, where, code);
    if (node.text == "across") return across(node, where, code);
    if (node.text == "previous") return previous(node, where, code);
    if (const auto kind = kind_named(node.text))
      return aggregate_call(node, *kind, false, where, code);
    if (node.text == "argmax_worker") {
      fail(node.at, "argmax_worker stands in `evidence` only, alone between braces");
    } else if (node.text == "fired") {
      fail(node.at, "fired() is not there yet: no rule follows other rules");
    } else if (node.text == "other") {
      fail(node.at, "other() is not there yet: no rule can look at a second run");
    } else {
      const std::string near = core::nearest(node.text, function_names());
      fail(node.at, "unknown function " + node.text +
                        (near.empty() ? "; known: " + listed(function_names())
                                      : "; did you mean " + near + "?"));
    }
    return Type::number;
  }

  Type simple_call(const Node& node, Op op, Where where, Code& code) {
    const bool two = op == Op::least || op == Op::greatest;
    if (!arguments(node, two ? 2 : 1, two ? "min2(a, b)" : (node.text + "(x)").c_str())) {
      return Type::number;
    }
    for (const Node& part : node.parts) expect(part, where, code, Type::number);
    code.push_back({op, 0, 0});
    return op == Op::finite ? Type::boolean : Type::number;
  }

  Type choice(const Node& node, Where where, Code& code) {
    if (!arguments(node, 3, "if(condition, a, b)")) return Type::number;
    expect(node.parts[0], where, code, Type::boolean);
    const Type type = compile(node.parts[1], where, code);
    if (type == Type::text) fail(node.parts[1].at, "expected a number or a bool, found a text");
    expect(node.parts[2], where, code, type);
    code.push_back({Op::choose, 0, 0});
    return type;
  }

  Type previous(const Node& node, Where where, Code& code) {
    if (!arguments(node, 1, "previous(mean(x))")) return Type::number;
    const Node& inner = node.parts[0];
    const auto kind = inner.kind == Node::Kind::call ? kind_named(inner.text) : std::nullopt;
    if (!kind || *kind == Kind::prev) {
      fail(inner.at, "expected an aggregate of a window: previous(mean(x))");
      return Type::number;
    }
    if (draft_.window.kind == Window::Kind::start) {
      fail(node.at,
           "there is no window before one that began with the run; give `window: last …` "
           "or `every …`");
    }
    return aggregate_call(inner, *kind, true, where, code);
  }

  Type across(const Node& node, Where where, Code& code) {
    if (!arguments(node, 2, "across(max, x)")) return Type::number;
    if (where != Where::open) {
      fail(node.at, "across() cannot stand inside an aggregate or another across()");
    } else if (draft_.folded.empty()) {
      fail(node.at,
           "across() folds what `by` leaves out, and it leaves out nothing: give `by: "
           "[run_uid]`, for instance");
    }
    const Node& how = node.parts[0];
    const auto kind =
        how.kind == Node::Kind::name && how.owner.empty() ? fold_named(how.text) : std::nullopt;
    if (!kind) {
      const std::string near = core::nearest(how.text, fold_names());
      fail(how.at, "expected " + listed(fold_names()) +
                       (near.empty() ? "" : "; did you mean " + near + "?"));
      return Type::number;
    }
    Formula::Fold fold{*kind, {}};
    expect(node.parts[1], Where::member, fold.code, Type::number);
    code.push_back({Op::fold, static_cast<std::uint16_t>(out_.formula.folds.size()), 0});
    out_.formula.folds.push_back(std::move(fold));
    return Type::number;
  }

  void argmax(const Node& node) {
    if (!arguments(node, 1, "argmax_worker(x)")) return;
    if (std::find(draft_.folded.begin(), draft_.folded.end(), "worker") == draft_.folded.end()) {
      fail(node.at, "argmax_worker needs a rule that folds over workers: leave worker out of `by`");
      return;
    }
    if (out_.argmax) fail(node.at, "only one argmax_worker can be told");
    Formula::Fold fold{Formula::Fold::Kind::max, {}};
    expect(node.parts[0], Where::member, fold.code, Type::number);
    out_.argmax = static_cast<std::uint16_t>(out_.formula.folds.size());
    out_.formula.folds.push_back(std::move(fold));
  }

  // A constant of an aggregate, such as the share of a quantile.
  double constant(const Node& node, const char* what, double low, double high, bool integer) {
    const bool fits = node.kind == Node::Kind::number && node.text != "steps" &&
                      node.number >= low && node.number <= high &&
                      (!integer || node.number == std::floor(node.number));
    if (!fits) fail(node.at, std::string("expected ") + what);
    return node.number;
  }

  Type aggregate_call(const Node& node, Kind kind, bool before, Where where, Code& code) {
    const bool second = node.text == "quantile" || node.text == "ewma" || node.text == "prev";
    const char* form = node.text == "quantile" ? "quantile(x, 0.9)"
                       : node.text == "ewma"   ? "ewma(x, 0.1)"
                                               : "prev(x, 1)";
    if (!arguments(node, second ? 2 : 1, second ? form : (node.text + "(x)").c_str())) {
      return Type::number;
    }
    if (where == Where::argument && kind != Kind::prev) {
      fail(node.at, "an aggregate cannot stand inside another; only prev() can");
    }
    if (where == Where::open && !draft_.folded.empty()) {
      fail(node.at, "this differs between " + draft_.folded.front() +
                        "s, which `by` leaves out: fold it, across(max, " + node.text + "(…))");
    }
    const std::string amiss = window_problem(out_.formula, node.text, kind, before);
    if (!amiss.empty()) fail(node.at, amiss);
    double number = kind == Kind::slope ? slope_factor(out_.formula) : 0;
    if (node.text == "quantile")
      number = constant(node.parts[1], "a share from 0 to 1", 0, 1, false);
    if (node.text == "median") number = 0.5;
    if (kind == Kind::ewma) {
      number = constant(node.parts[1], "the weight of the newest point, above 0 and at most 1",
                        1e-9, 1, false);
    }
    if (kind == Kind::prev) {
      number =
          constant(node.parts[1], "a whole number of points from 1 to 1024", 1, kMostPoints, true);
    }
    const auto outer =
        std::exchange(argument_of_, where == Where::argument ? argument_of_ : std::nullopt);
    Argument argument;
    const Type type = compile(node.parts[0], Where::argument, argument.code);
    const auto owner = argument_of_;
    if (where != Where::argument) argument_of_ = outer;
    argument.boolean = type == Type::boolean;
    if (type == Type::text || (argument.boolean && kind != Kind::count)) {
      fail(node.parts[0].at, std::string("expected a number, found ") + named(type));
    }
    if (!owner) {
      fail(node.parts[0].at, "expected something of the selection, for instance " +
                                 std::string(example_of(source_of(0))));
      return Type::number;
    }
    code.push_back({Op::aggregate,
                    add_aggregate(out_.formula, kind, *owner, std::move(argument), number, before),
                    0});
    return Type::number;
  }

  const Draft& draft_;
  Rule& out_;
  std::array<bool, kMostSources> used_{};
  std::optional<std::size_t> argument_of_;  // the selection that an aggregate's argument is of
  std::optional<Problem> problem_;
};

}  // namespace

std::optional<Complaint> compile(const Draft& draft, Rule& out) {
  const Parsed<Node> when = parse_expression(draft.when);
  if (!when) return Complaint{"when", *when.problem};
  Compiler compiler(draft, out);
  compiler.condition(when.value);
  if (compiler.problem()) return Complaint{"when", *compiler.problem()};
  if (draft.has_evidence) {
    const Parsed<Template> text = parse_template(draft.evidence);
    if (!text) return Complaint{"evidence", *text.problem};
    out.evidence = compiler.sentence(text.value);
    if (compiler.problem()) return Complaint{"evidence", *compiler.problem()};
  }
  if (!fits(out.formula, out.spoken)) {
    return Complaint{"when", {0, "too many parts within each other to be computed"}};
  }
  lay_out(out.formula);
  return std::nullopt;
}

}  // namespace tocsin::rules::declared
