#include "rules/declared/choice.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "rules/declared/words.h"

namespace tocsin::rules::declared {
namespace {

using From = Selector::Source;

const std::vector<std::string>& labels_of(From source) {
  static const std::vector<std::string> kRows{"mode", "worker", "rank",    "node",
                                              "role", "dtype",  "op_type", "job"};
  static const std::vector<std::string> kSteps{"mode", "worker", "rank", "node", "job"};
  static const std::vector<std::string> kSamples{"node", "device", "job"};
  return source == From::system                         ? kSamples
         : source == From::step || source == From::span ? kSteps
                                                        : kRows;
}

// What a label may be compared with; empty: anything.
std::vector<std::string> values_of(std::string_view label) {
  std::vector<std::string> out;
  for (int code = 0; code < 64; ++code) {
    std::string_view text;
    if (label == "mode" && code < 4) text = core::to_string(static_cast<core::Mode>(code));
    if (label == "role" && code <= 17) text = core::to_string(static_cast<core::Role>(code));
    if (label == "dtype") {
      text = core::to_string(static_cast<core::Dtype>(code));
      if (!core::dtype_from(text)) text = {};
    }
    if (!text.empty() && std::find(out.begin(), out.end(), text) == out.end()) {
      out.emplace_back(text);
    }
  }
  return out;
}

}  // namespace

struct Choice::Test {
  std::string label;
  bool negated = false;
  std::string text;                   // to be equal to
  std::unique_ptr<re2::RE2> pattern;  // or to match as a whole

  [[nodiscard]] bool holds(std::string_view value) const {
    const bool same =
        pattern ? re2::RE2::FullMatch(re2::StringPiece(value.data(), value.size()), *pattern)
                : value == text;
    return same != negated;
  }
};

Choice::Choice() = default;
Choice::~Choice() = default;
Choice::Choice(Choice&&) noexcept = default;
Choice& Choice::operator=(Choice&&) noexcept = default;

namespace {

std::unique_ptr<re2::RE2> compiled(const std::string& pattern, std::size_t at,
                                   std::optional<Problem>& problem) {
  auto made = std::make_unique<re2::RE2>(pattern, re2::RE2::Quiet);
  if (!made->ok()) {
    problem = Problem{at, "\"" + pattern + "\" is no regular expression: " + made->error()};
  }
  return made;
}

bool holds_name(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Any other name is a label of the run, unless it is nearly one of the source's, or one of another source's.
std::optional<Problem> label_problem(const Matcher& matcher,
                                     const std::vector<std::string>& known) {
  const std::string near = core::nearest(matcher.name, known);
  const bool other = holds_name(labels_of(From::metric), matcher.name) || matcher.name == "device";
  if (!other && near.empty()) return std::nullopt;
  return Problem{matcher.at,
                 "this source has no label " + matcher.name +
                     (near.empty() ? "; it has " + listed(known) : "; did you mean " + near + "?")};
}

// Of a value that is no pattern, of a label that has few.
std::optional<Problem> value_problem(const Matcher& matcher) {
  const std::vector<std::string> values = values_of(matcher.name);
  if (values.empty() || holds_name(values, matcher.value)) return std::nullopt;
  const std::string near = core::nearest(matcher.value, values);
  return Problem{matcher.value_at, "unknown " + matcher.name + " \"" + matcher.value + "\"" +
                                       (near.empty() ? ": expected " + listed(values)
                                                     : "; did you mean " + near + "?")};
}

}  // namespace

std::optional<Problem> Choice::make(const Selector& selector, Choice& out) {
  out.source_ = selector.source;
  out.name_ = selector.argument;
  std::optional<Problem> problem;
  if (selector.source == From::collection) {
    out.selection_.add_collection(selector.argument);
  } else if (selector.source != From::system && selector.source != From::step) {
    out.any_ = selector.argument == ".*";
    out.pattern_ = std::make_unique<Test>();
    out.pattern_->pattern = compiled(selector.argument, selector.argument_at, problem);
  }
  for (const Matcher& matcher : selector.matchers) {
    if (problem) return problem;
    problem = out.add(matcher);
  }
  return problem;
}

std::optional<Problem> Choice::add(const Matcher& matcher) {
  const auto& known = labels_of(source_);
  const bool own = holds_name(known, matcher.name);
  if (!own) {
    if (auto problem = label_problem(matcher, known)) return problem;
  }
  Test test;
  test.label = matcher.name;
  test.negated = matcher.op[0] == '!';
  test.text = matcher.value;
  std::optional<Problem> problem;
  if (matcher.op.ends_with('~')) {
    test.pattern = compiled(matcher.value, matcher.value_at, problem);
  } else if (own) {
    problem = value_problem(matcher);
  }
  if (problem) return problem;
  if (matcher.name != "mode") {
    tests_.push_back(std::move(test));
    return std::nullopt;
  }
  for (int mode = 0; mode < 4; ++mode) {
    if (test.holds(core::to_string(static_cast<core::Mode>(mode)))) continue;
    modes_ = static_cast<std::uint8_t>(modes_ & ~mode_bit(static_cast<core::Mode>(mode)));
  }
  if (modes_ == 0) return Problem{matcher.value_at, "no mode is left to look at"};
  return std::nullopt;
}

Match Choice::labels(const Candidate& who, std::string_view device) const {
  if ((modes_ & mode_bit(who.mode)) == 0) return Match::no;
  Match answer = Match::yes;
  for (const Test& test : tests_) {
    std::string number;
    std::string_view value;
    if (test.label == "worker") {
      if (!who.worker_named) {
        answer = Match::unknown;
        continue;
      }
      value = who.worker;
    } else if (test.label == "rank") {
      number = std::to_string(who.rank);
      value = number;
    } else if (test.label == "node") {
      value = who.node;
    } else if (test.label == "device") {
      value = device;
    } else if (test.label == "role") {
      value = core::to_string(who.role);
    } else if (test.label == "dtype") {
      value = core::to_string(who.dtype);
    } else if (test.label == "op_type") {
      if (who.name == nullptr) {
        answer = Match::unknown;
        continue;
      }
      value = who.name->op_type;
    } else if (test.label == "job") {
      value = who.job;
    } else {
      for (const auto& [name, text] : who.labels) {
        if (name == test.label) value = text;
      }
    }
    if (!test.holds(value)) return Match::no;
  }
  return answer;
}

Match Choice::matches(const Candidate& candidate) const {
  const bool metric = source_ == From::metric;
  if (candidate.scalar != metric && source_ != From::collection) return Match::no;
  if (source_ == From::collection && candidate.scalar) return Match::no;
  const Match who = labels(candidate, {});
  if (who == Match::no) return Match::no;
  if (source_ == From::collection) {
    const Match chosen = selection_.matches(candidate.role, candidate.name);
    return chosen == Match::yes ? who : chosen;
  }
  if (any_) return who;
  if (candidate.name == nullptr) return Match::unknown;
  const std::string& text = candidate.name->text;
  // A logged value is found under its name, and as scalar/<name>.
  const bool found = pattern_->holds(text) || (metric && pattern_->holds("scalar/" + text));
  return found ? who : Match::no;
}

Match Choice::matches_span(const Candidate& candidate) const {
  const Match who = labels(candidate, {});
  if (who == Match::no || any_) return who;
  if (candidate.name == nullptr) return Match::unknown;
  return pattern_->holds(candidate.name->text) ? who : Match::no;
}

bool Choice::matches_step(const Candidate& who) const { return labels(who, {}) == Match::yes; }

bool Choice::matches_series(std::string_view base, std::string_view device,
                            const Candidate& who) const {
  return base == name_ && labels(who, device) == Match::yes;
}

}  // namespace tocsin::rules::declared
