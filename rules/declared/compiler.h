// The compiler's inside: one pass over the parsed texts of a rule (compile.h has its door).
// compile.cc: conditions, sentences and names; compile_calls.cc: functions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rules/declared/compile.h"
#include "rules/declared/formula_parts.h"
#include "rules/declared/words.h"

namespace tocsin::rules::declared {

enum class Type : std::uint8_t { number, boolean, text };

inline const char* named(Type type) {
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

  void condition(const Node& node);

  Sentence sentence(const Template& text);

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
  static const Node* comparison_in(const Node& node);

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

  Type compile(const Node& node, Where where, Code& code);

  Type binary(const Node& node, Where where, Code& code);

  std::optional<std::size_t> owner_of(const Node& node);

  Type name(const Node& node, Where where, Code& code);

  void use(std::size_t owner, const Node& node, Where where);

  bool arguments(const Node& node, std::size_t count, const char* form);

  Type call(const Node& node, Where where, Code& code);

  Type simple_call(const Node& node, Op op, Where where, Code& code);

  Type choice(const Node& node, Where where, Code& code);

  Type fired(const Node& node, Where where, Code& code);

  Type other(const Node& node, Where where, Code& code);

  Type previous(const Node& node, Where where, Code& code);

  Type across(const Node& node, Where where, Code& code);

  void argmax(const Node& node);

  // A constant of an aggregate, such as the share of a quantile.
  double aggregate_number(const Node& node, Kind kind);
  double constant(const Node& node, const char* what, double low, double high, bool integer);

  Type aggregate_call(const Node& node, Kind kind, bool before, Where where, Code& code);

  const Draft& draft_;
  Rule& out_;
  std::array<bool, kMostSources> used_{};
  std::optional<std::size_t> argument_of_;  // the selection that an aggregate's argument is of
  bool in_other_ = false;
  std::string_view text_ = "when";  // the key whose text is being compiled
  std::optional<Problem> problem_;
};

}  // namespace tocsin::rules::declared
