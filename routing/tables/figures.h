// The router's figures that have a label: by route, by integration, by reason (docs/alerts.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/function_ref.h"

namespace tocsin::routing {

/// One value of one metric. `name` is complete; `of` is what the label says, valid during the call.
struct Figure {
  std::string_view name;
  std::string_view help;
  std::string_view label;
  std::string_view of;
  double value = 0;
  bool grows = false;  // a counter, since create()
};

using EachFigure = core::FunctionRef<void(const Figure&)>;

/// Counts by label value.
using CountBy = std::map<std::string, std::uint64_t, std::less<>>;

inline void add_to(CountBy& counts, std::string_view of, std::uint64_t amount = 1) {
  const auto found = counts.find(of);
  if (found != counts.end()) {
    found->second += amount;
  } else if (amount > 0) {
    counts.emplace(of, amount);
  }
}

/// `figure`: name, help, label and kind of all.
inline void show(const CountBy& counts, Figure figure, EachFigure each) {
  for (const auto& [of, value] : counts) {
    figure.of = of;
    figure.value = static_cast<double>(value);
    each(figure);
  }
}

/// The kind of a suppression's reason ("silence:<id>", "mute_time:<name>"): what stands before the name.
inline std::string_view kind_of_reason(std::string_view reason) {
  return reason.substr(0, reason.find(':'));
}

/// Who raised an issue, by its `source`: `rules`, `router`, `alerts` (the API of Alertmanager), `other`.
std::string_view source_type(std::string_view source);

}  // namespace tocsin::routing
