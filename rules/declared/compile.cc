#include "rules/declared/compile.h"

#include <algorithm>

#include "core/text.h"
#include "rules/declared/compiler.h"

namespace tocsin::rules::declared {

void Compiler::condition(const Node& node) {
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

Sentence Compiler::sentence(const Template& text) {
  text_ = "evidence";
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

// The first comparison of the condition that no `not` turns round: what an issue speaks of.
const Node* Compiler::comparison_in(const Node& node) {
  if (node.kind == Node::Kind::binary) {
    if (compares(operator_named(node.text))) return &node;
    for (const Node& part : node.parts) {
      if (const Node* found = comparison_in(part)) return found;
    }
  }
  return nullptr;
}

Type Compiler::compile(const Node& node, Where where, Code& code) {
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

Type Compiler::binary(const Node& node, Where where, Code& code) {
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

std::optional<std::size_t> Compiler::owner_of(const Node& node) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < draft_.selected.size(); ++i) {
    if (several() && draft_.selected[i].name == node.owner) return i;
    if (several()) names.push_back(draft_.selected[i].name);
  }
  if (!several() && node.owner.empty()) return 0;
  if (!several()) {
    fail(node.at, "there is one selection without a name: write " + node.text + " alone");
  } else if (const auto at = std::find(names.begin(), names.end(), node.text);
             node.owner.empty() && at != names.end()) {
    const auto number = static_cast<std::size_t>(at - names.begin());
    fail(node.at, node.text + " is a selection: write " + node.text + "." +
                      std::string(example_of(source_of(number))) + " for its value");
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

Type Compiler::name(const Node& node, Where where, Code& code) {
  const auto owner = owner_of(node);
  if (!owner) return Type::number;
  const auto field = field_named(node.text, source_of(*owner));
  if (!field) {
    // Labels stand by themselves between braces.
    static const std::vector<std::string> kNone;
    const bool told = text_ == "evidence" && where == Where::open;
    fail(node.at, unknown_name(node.text, source_of(*owner), told ? draft_.labels : kNone));
    return Type::number;
  }
  if (*field >= kSent) request(*field, out_.requests);
  use(*owner, node, where);
  if (where == Where::open && !draft_.folded.empty()) {
    fail(node.at, node.text + " differs between " + draft_.folded.front() +
                      "s, which `by` leaves out: fold it, across(max, " + node.text + ")");
  }
  if (where != Where::argument && out_.formula.cut()) {
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

void Compiler::use(std::size_t owner, const Node& node, Where where) {
  used_[owner] = true;
  if (where != Where::argument) return;
  if (argument_of_ && *argument_of_ != owner) {
    fail(node.at, "an aggregate takes values of one selection");
  }
  argument_of_ = owner;
}

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
