#include "rules/declared/formula_parts.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tocsin::rules::declared {

std::uint16_t add_aggregate(Formula& formula, Kind kind, std::size_t owner, Argument argument,
                            double number, bool before) {
  Source& source = formula.sources[owner];
  const auto same = [](const Code& a, const Code& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Instruction& x, const Instruction& y) {
                        return x.op == y.op && x.index == y.index && x.number == y.number;
                      });
  };
  std::size_t at = 0;
  while (at < source.arguments.size() && !same(source.arguments[at].code, argument.code)) ++at;
  if (at == source.arguments.size()) source.arguments.push_back(std::move(argument));
  for (std::size_t i = 0; i < formula.aggregates.size(); ++i) {
    const Aggregate& known = formula.aggregates[i];
    if (known.kind == kind && known.source == owner && known.argument == at &&
        known.number == number && known.previous == before) {
      return static_cast<std::uint16_t>(i);
    }
  }
  formula.doubled = formula.doubled || before;
  formula.aggregates.push_back({kind, static_cast<std::uint16_t>(owner),
                                static_cast<std::uint16_t>(at), number, before, 0, 0});
  return static_cast<std::uint16_t>(formula.aggregates.size() - 1);
}

std::string window_problem(const Formula& formula, std::string_view name, Kind kind, bool before) {
  const bool one_point = formula.window.kind == Window::Kind::last && formula.window.size.steps &&
                         formula.window.size.amount == 1;
  static constexpr std::array<Kind, 8> kNeedMore{
      Kind::std,    Kind::delta,           Kind::rate,           Kind::slope, Kind::ewma,
      Kind::zscore, Kind::steps_since_min, Kind::steps_since_max};
  if (one_point && !before &&
      std::find(kNeedMore.begin(), kNeedMore.end(), kind) != kNeedMore.end()) {
    return (std::string(name) +
            " needs more than one point: give `window`, for instance `last 50 "
            "steps` or `since start`");
  }
  if (formula.stepless && kind != Kind::prev && formula.window.kind != Window::Kind::start &&
      formula.window.size.steps) {
    return (
        "samples of a node have no steps: give a window of time, `every 60s` for "
        "instance");
  }
  if (formula.stepless && (kind == Kind::steps_since_min || kind == Kind::steps_since_max)) {
    return ("samples of a node have no steps");
  }
  return {};
}

double slope_factor(const Formula& formula) {
  if (formula.stepless || formula.window.kind == Window::Kind::session) return 1e9;
  const bool steps = formula.window.kind == Window::Kind::start || formula.window.size.steps;
  return steps ? 1.0 : 1e9;
}

void request(std::uint16_t field, std::vector<std::string>& requests) {
  for (const core::Statistic& one : core::builtin_statistics()) {
    if (one.form != core::StatisticForm::sparse || one.id + kSent != field) continue;
    const std::string word(one.request);
    // What has parameters is measured as `capture` says; here they are not known.
    if (!word.empty() && one.parameters.empty() &&
        std::find(requests.begin(), requests.end(), word) == requests.end()) {
      requests.push_back(word);
    }
  }
}

bool fits(const Formula& formula, const std::vector<Spoken>& spoken) {
  const auto small = [](const Code& code) { return depth_of(code) <= kStack; };
  return small(formula.when) &&
         std::all_of(spoken.begin(), spoken.end(),
                     [&](const Spoken& one) { return small(one.code); }) &&
         std::all_of(formula.others.begin(), formula.others.end(), small) &&
         std::all_of(formula.folds.begin(), formula.folds.end(),
                     [&](const Formula::Fold& one) { return small(one.code); }) &&
         std::all_of(formula.sources.begin(), formula.sources.end(), [&](const Source& source) {
           return std::all_of(source.arguments.begin(), source.arguments.end(),
                              [&](const Argument& one) { return small(one.code); });
         });
}

}  // namespace tocsin::rules::declared
