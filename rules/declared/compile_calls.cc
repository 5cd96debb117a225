// The functions of a rule's texts: what they take, and what of it can stand where.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.h"
#include "rules/declared/compiler.h"

namespace tocsin::rules::declared {

bool Compiler::arguments(const Node& node, std::size_t count, const char* form) {
  if (node.parts.size() == count) return true;
  fail(node.at, node.text + " takes " + std::to_string(count) +
                    (count == 1 ? " argument: " : " arguments: ") + form + "; found " +
                    std::to_string(node.parts.size()));
  return false;
}

Type Compiler::call(const Node& node, Where where, Code& code) {
  if (const auto simple = simple_named(node.text)) {
    return simple_call(node, *simple, where, code);
  }
  if (node.text == "if") return choice(node, where, code);
  if (node.text == "fired") return fired(node, where, code);
  if (node.text == "other") return other(node, where, code);
  if (node.text == "across") return across(node, where, code);
  if (node.text == "previous") return previous(node, where, code);
  if (const auto kind = kind_named(node.text))
    return aggregate_call(node, *kind, false, where, code);
  if (node.text == "argmax_worker") {
    fail(node.at, "argmax_worker stands in `evidence` only, alone between braces");
  } else {
    fail(node.at, unknown_function(node.text));
  }
  return Type::number;
}

Type Compiler::simple_call(const Node& node, Op op, Where where, Code& code) {
  const bool two = op == Op::least || op == Op::greatest;
  if (!arguments(node, two ? 2 : 1, two ? "min2(a, b)" : (node.text + "(x)").c_str())) {
    return Type::number;
  }
  for (const Node& part : node.parts) expect(part, where, code, Type::number);
  code.push_back({op, 0, 0});
  return op == Op::finite ? Type::boolean : Type::number;
}

Type Compiler::choice(const Node& node, Where where, Code& code) {
  if (!arguments(node, 3, "if(condition, a, b)")) return Type::number;
  expect(node.parts[0], where, code, Type::boolean);
  const Type type = compile(node.parts[1], where, code);
  if (type == Type::text) fail(node.parts[1].at, "expected a number or a bool, found a text");
  expect(node.parts[2], where, code, type);
  code.push_back({Op::choose, 0, 0});
  return type;
}

Type Compiler::fired(const Node& node, Where where, Code& code) {
  if (!out_.formula.others.empty() || in_other_) {
    fail(node.at, "fired() and other() cannot stand in one rule");
  }
  const bool lately = node.parts.size() == 2;
  if (!lately && !arguments(node, 1, "fired(\"rule\")")) return Type::boolean;
  if (where != Where::open) {
    fail(node.at, "fired() cannot stand inside an aggregate or across()");
  } else if (several()) {
    fail(
        node.at,
        "fired() needs one selection: with `let` a rule is judged before others have said all of a "
        "step");
  } else if (out_.formula.stepless) {
    fail(node.at, "samples of a node have no steps at which another rule hits");
  }
  const Node& rule = node.parts[0];
  if (rule.kind != Node::Kind::text || rule.text.empty()) {
    fail(rule.at, "expected the name of a rule in quotes");
  }
  Formula::Hearing one{out_.follows.size(), 0};
  if (lately) {
    const Node& size = node.parts[1];
    const bool fits = size.kind == Node::Kind::number && size.text == "steps" && size.number >= 1 &&
                      size.number <= 1e9 && size.number == std::floor(size.number);
    if (!fits) fail(size.at, "expected a number of steps: fired(\"rule\", 50 steps)");
    one.steps = static_cast<std::int64_t>(size.number);
  }
  if (problem_) return Type::boolean;
  out_.follows.push_back({rule.text, std::string(text_), rule.at + 1});
  code.push_back({Op::hearing, static_cast<std::uint16_t>(out_.formula.hearings.size()), 0});
  out_.formula.hearings.push_back(one);
  return Type::boolean;
}

Type Compiler::other(const Node& node, Where where, Code& code) {
  if (!arguments(node, 2, "other(\"run\", mean(x))")) return Type::number;
  using From = Selector::Source;
  const From source = source_of(0);
  if (where != Where::open || in_other_) {
    fail(node.at, "other() cannot stand inside an aggregate, across() or another other()");
  } else if (several() ||
             (source != From::metric && source != From::tensor && source != From::collection)) {
    fail(node.at, "other() compares one selection of metric(…), tensor(…) or collection(…)");
  } else if (!draft_.folded.empty()) {
    fail(node.at, "other() compares each metric or tensor of a worker: leave `by` out");
  } else if (out_.formula.cut()) {
    fail(node.at, "runs are compared step by step: take `last …` or `since start`");
  }
  const Node& name = node.parts[0];
  const auto run = name.kind == Node::Kind::text ? core::parse_run_uid(name.text) : std::nullopt;
  if (!run) {
    fail(name.at, "expected the uid of a run in quotes, as `tocsin status` names it");
  } else if (out_.other && *out_.other != *run) {
    fail(name.at, "a rule compares with one other run");
  }
  if (problem_) return Type::number;
  out_.other = run;
  in_other_ = true;
  Code theirs;
  expect(node.parts[1], where, theirs, Type::number);
  in_other_ = false;
  code.push_back({Op::other, static_cast<std::uint16_t>(out_.formula.others.size()), 0});
  out_.formula.others.push_back(std::move(theirs));
  if (!out_.formula.hearings.empty()) fail(node.at, "fired() and other() cannot stand in one rule");
  if (!out_.requests.empty()) {
    fail(node.at,
         "runs are compared by statistics that are always sent, not by " + out_.requests.front());
  }
  return Type::number;
}

Type Compiler::previous(const Node& node, Where where, Code& code) {
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

Type Compiler::across(const Node& node, Where where, Code& code) {
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
    fail(how.at,
         "expected " + listed(fold_names()) + (near.empty() ? "" : "; did you mean " + near + "?"));
    return Type::number;
  }
  Formula::Fold fold{*kind, {}};
  expect(node.parts[1], Where::member, fold.code, Type::number);
  code.push_back({Op::fold, static_cast<std::uint16_t>(out_.formula.folds.size()), 0});
  out_.formula.folds.push_back(std::move(fold));
  return Type::number;
}

void Compiler::argmax(const Node& node) {
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
double Compiler::constant(const Node& node, const char* what, double low, double high,
                          bool integer) {
  const bool fits = node.kind == Node::Kind::number && node.text != "steps" && node.number >= low &&
                    node.number <= high && (!integer || node.number == std::floor(node.number));
  if (!fits) fail(node.at, std::string("expected ") + what);
  return node.number;
}

// What an aggregate is told besides what it is of; 0: nothing.
double Compiler::aggregate_number(const Node& node, Kind kind) {
  if (node.text == "median") return 0.5;
  if (node.text == "quantile") return constant(node.parts[1], "a share from 0 to 1", 0, 1, false);
  switch (kind) {
    case Kind::slope:
      return slope_factor(out_.formula);
    case Kind::ewma:
      return constant(node.parts[1], "the weight of the newest point, above 0 and at most 1", 1e-9,
                      1, false);
    case Kind::prev:
      return constant(node.parts[1], "a whole number of points from 1 to 1024", 1, kMostPoints,
                      true);
    default:
      return 0;
  }
}

Type Compiler::aggregate_call(const Node& node, Kind kind, bool before, Where where, Code& code) {
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
  const double number = aggregate_number(node, kind);
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

}  // namespace tocsin::rules::declared
