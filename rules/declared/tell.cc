// What the issues of declarative rules say.
#include <cctype>
#include <cmath>

#include "rules/contract/sentence.h"
#include "rules/declared/row_rule.h"

namespace tocsin::rules::declared {
namespace {

// A limit that is a number alone has no name of its own.
bool literal(const Spoken& side) {
  const bool negative = side.code.size() == 2 && side.code.back().op == Op::negate;
  return (side.code.size() == 1 || negative) && side.code.front().op == Op::constant;
}

std::string filled(const Rule& rule, const double* numbers,
                   core::FunctionRef<std::string(const std::string&)> label) {
  const Sentence& sentence = *rule.evidence;
  std::string out = sentence.texts.front();
  for (std::size_t i = 0; i < sentence.holes.size(); ++i) {
    const Sentence::Hole& hole = sentence.holes[i];
    out += hole.label.empty() ? figure(numbers[hole.number]) : label(hole.label);
    out += sentence.texts[i + 1];
  }
  return out;
}

}  // namespace

Finding tell(const Rule& rule, const double* numbers, const Subject& subject,
             core::FunctionRef<std::string(const std::string&)> label) {
  Finding out = Finding::that("when", 1);
  std::string words = "its condition holds";
  if (!rule.op.empty()) {
    const Spoken& left = rule.spoken[0];
    const Spoken& right = rule.spoken[1];
    out = Finding::that(left.text, numbers[0]);
    out.is(rule.op, literal(right) ? "limit" : right.text, numbers[1]);
    words = literal(right)
                ? sentence("{} is {} ({} {})", left.text, numbers[0], rule.op, numbers[1])
                : sentence("{} is {} ({} {}, which is {})", left.text, numbers[0], rule.op,
                           right.text, numbers[1]);
  }
  const std::string who = subject.name.empty() ? std::string("the run") : subject.name;
  if (rule.evidence) {
    out.says(sentence("{}: {}.", who, filled(rule, numbers, label)))
        .adds(sentence("At {}: {}.", subject.place(), words));
  } else {
    out.says(sentence("{}: {} at {}.", who, words, subject.place()));
  }
  for (std::size_t i = rule.op.empty() ? 0 : 2; i < rule.spoken.size(); ++i) {
    out.with(rule.spoken[i].text, numbers[i]);
  }
  return out;
}

Finding tell(const Rule& rule, const Sight& sight, const Subject& subject,
             core::FunctionRef<std::string(const std::string&)> label) {
  std::vector<double> numbers;
  numbers.reserve(rule.spoken.size());
  for (const Spoken& one : rule.spoken) numbers.push_back(run(one.code, sight));
  return tell(rule, numbers.data(), subject, label);
}

}  // namespace tocsin::rules::declared
