// Units of a layer: what dead_relu and saturated_activation count. A position of the shape behind
// the batch axis, or a channel, whose samples run over batch and space.
#pragma once

#include <string>

#include "rules/builtin/shared/share_bounds.h"
#include "rules/contract/rule.h"
#include "rules/contract/selection.h"

namespace tocsin::rules {

/// `Config` has unit_axis and min_samples.
template <typename Config>
void read_units(config::Reader& in, Config& cfg) {
  in.optional(
      "unit_axis", cfg.unit_axis, config::one_of({"auto", "element", "channel"}),
      "what a unit is; auto = a channel if there are three dimensions or more, else an element");
  in.optional("min_samples", cfg.min_samples, config::at_least(std::uint64_t{1}),
              "least number of samples of each unit; saved steps are added up until it is reached");
}

/// How many units `count` values of this shape are; 0: it is not known, or not the shape of so many.
/// Axis 0 is the batch, axis 1 the channel, unless the producer says which (TensorFlow has them last).
inline double units_of(const std::string& axis, const Name* name, std::uint64_t count) {
  if (name == nullptr || name->shape.empty()) return 0;
  const std::size_t rank = name->shape.size();
  if (rank == 1) return 1;
  const bool channel = axis == "channel" || (axis == "auto" && rank > 2);
  const auto dimensions = static_cast<std::int64_t>(rank);
  const std::int64_t stated =
      name->axis.value_or(1) + (name->axis.value_or(1) < 0 ? dimensions : 0);
  const auto at = static_cast<std::size_t>(stated > 0 && stated < dimensions ? stated : 1);
  std::uint64_t units = 1;
  for (std::size_t i = channel ? at : 1; i < (channel ? at + 1 : rank); ++i) {
    if (name->shape[i] <= 0 || static_cast<std::uint64_t>(name->shape[i]) > count / units) return 0;
    units *= static_cast<std::uint64_t>(name->shape[i]);
  }
  return count % units == 0 ? static_cast<double>(units) : 0;
}

/// A single value has no units.
inline bool is_single(const Row& row, const Name* name) {
  return row.count() == 1 && (name == nullptr || name->shape.empty());
}

/// Share of units with less than `percent` of their `samples` active, when `active` of all samples
/// are.
inline Bounds share_of_units(const Bounds& active, double percent, double units, double samples) {
  if (percent > 0 && units > 0 && samples == 1) return {1 - active.high, 1 - active.low};
  if (units == 1 && active.exact()) {
    const double dead = 100 * active.low < percent ? 1 : 0;
    return {dead, dead};
  }
  return share_of_units(active, percent);
}

/// The latest saved steps of one tensor, added up until each unit has enough samples. Trivially
/// copyable.
struct UnitWindow {
  double units = 0;  // 0: not known
  double values = 0;
  double active_low = 0;   // active values: at least
  double active_high = 0;  // at most
  std::int64_t since = 0;
  std::uint64_t steps = 0;
  bool full = true;  // judged: the next step begins anew
  Gap<7> gap{};

  /// Adds a step; another number of units starts anew.
  void add(std::int64_t step, double n, double of_units, const Bounds& active) {
    if (full || of_units != units) {
      *this = {};
      since = step;
      units = of_units;
    }
    full = false;
    values += n;
    active_low += active.low * n;
    active_high += active.high * n;
    ++steps;
  }
  [[nodiscard]] double samples() const { return units > 0 ? values / units : 1; }
  [[nodiscard]] Bounds active() const { return {active_low / values, active_high / values}; }
};

}  // namespace tocsin::rules
