#include "collectors/hook/capture/save_grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/units.h"

namespace tocsin::hook {
namespace {

constexpr std::int64_t kMostPerDecade = 1000;

/// A power of ten to the k/n lies within half a step of `step`, and k is a multiple of `stretch`.
bool on_decades(std::int64_t n, std::int64_t step, std::int64_t stretch) {
  const auto at = [n](double value) { return static_cast<double>(n) * std::log10(value); };
  const auto middle = static_cast<double>(step);
  const auto first =
      std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(at(middle - 0.5))), 0);
  const auto last = static_cast<std::int64_t>(std::floor(at(middle + 0.5)));
  return last / stretch * stretch >= first;
}

}  // namespace

std::optional<Every> parse_every(std::string_view text) {
  std::int64_t number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error == std::errc()) {
    std::string_view unit(end, static_cast<std::size_t>(last - end));
    while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
    if (unit == "per decade") {
      if (number < 1 || number > kMostPerDecade) return std::nullopt;
      return Every{1, core::Duration{0}, number};
    }
    if (unit.empty() || unit == "step" || unit == "steps") {
      return number >= 1 ? std::optional<Every>({number, core::Duration{0}, 0}) : std::nullopt;
    }
  }
  const auto time = core::parse_duration(text);
  if (!time || *time <= core::Duration{0}) return std::nullopt;
  return Every{1, *time, 0};
}

std::string to_text(const Every& every) {
  if (every.time > core::Duration{0}) return core::to_text(every.time);
  if (every.per_decade > 0) return std::to_string(every.per_decade) + " per decade";
  return std::to_string(every.steps) + (every.steps == 1 ? " step" : " steps");
}

void SaveGrid::lay(const SaveRule& rule) {
  if (rule.every) every = *rule.every;
  if (rule.start_step) start_step = *rule.start_step;
  if (rule.end_step) end_step = *rule.end_step;
  if (rule.steps) steps = *rule.steps;
}

bool SaveGrid::lists(std::int64_t step) const {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

bool on_grid(const Every& every, std::int64_t step, std::int64_t stretch) {
  if (every.time > core::Duration{0}) return false;
  if (step == 0) return true;
  if (every.per_decade > 0) return on_decades(every.per_decade, step, stretch);
  return step % (every.steps * stretch) == 0;
}

}  // namespace tocsin::hook
