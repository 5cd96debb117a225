// Texts of declarative rules from any bytes: never crash, a problem stands within its text, and what
// compiles can be computed over points that were never seen.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "rules/declared/choice.h"
#include "rules/declared/compile.h"

namespace {

using namespace tocsin::rules;            // NOLINT: this file's language
using namespace tocsin::rules::declared;  // NOLINT

void check(const std::optional<Problem>& problem, std::size_t size) {
  if (problem && (problem->at > size || problem->message.empty())) std::abort();
}

void use(const Rule& rule) {
  std::vector<std::uint64_t> memory(rule.formula.sources[0].words);
  begin(rule.formula, 0, memory.data());
  const std::uint64_t* const words = memory.data();
  const std::vector<double> folds(rule.formula.folds.size(), 1.0);
  for (int i = 0; i < 40; ++i) {
    Point point;
    point.value = i % 7 == 3 ? std::nan("") : i * 1.5 - 20;
    point.step = i * (i % 5 == 4 ? 3 : 1);
    point.time = std::int64_t{i} * 700'000'000;
    const Sight sight{&rule.formula, &point, &words, folds.data()};
    const bool due = arrives(rule.formula, 0, memory.data(), point);
    if (due) {
      (void)run(rule.formula.when, sight);
      turn(rule.formula, 0, memory.data());
    }
    if (!add(rule.formula, 0, memory.data(), point, due)) continue;
    const double answer = run(rule.formula.when, sight);
    if (!std::isnan(answer) && answer != 0 && answer != 1) std::abort();
    if (rule.formula.cut()) turn(rule.formula, 0, memory.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Lines: a selector, a window, a condition, an evidence sentence.
  std::string_view parts[4];
  std::string_view rest = text;
  for (std::string_view& part : parts) {
    const std::size_t end = rest.find('\n');
    part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  auto selector = parse_selector(parts[0]);
  check(selector.problem, parts[0].size());
  const auto window = parse_window(parts[1]);
  check(window.problem, parts[1].size());
  check(parse_expression(parts[2]).problem, parts[2].size());
  check(parse_template(parts[3]).problem, parts[3].size());
  Choice choice;
  if (selector) check(Choice::make(selector.value, choice), parts[0].size());
  Draft draft;
  draft.selected.push_back({"", selector ? selector.value : Selector{}});
  if (window && window.value.size.amount <= std::int64_t{kMostPoints}) draft.window = window.value;
  draft.when = parts[2];
  draft.evidence = parts[3];
  draft.has_evidence = !parts[3].empty();
  draft.labels = {"metric", "worker", "mode"};
  Rule rule;
  if (const auto complaint = compile(draft, rule)) {
    check(complaint->problem, complaint->key == "when" ? parts[2].size() : parts[3].size());
    return 0;
  }
  use(rule);
  return 0;
}
