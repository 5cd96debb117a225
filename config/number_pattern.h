// Numbers within bounds as regular expressions: what JSON Schema can say of a number that is written as a
// text. Internal to config.
#pragma once

#include <optional>
#include <string>

namespace tocsin::config {

struct NumberRange {
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool exclusive_minimum = false;
};

/// Whole numbers; exact.
std::string whole_pattern(const NumberRange& range);
/// Any numbers; exact for bounds that are whole numbers from 0 on and numbers without an exponent. With one
/// only the exponent's sign is looked at.
std::string number_pattern(const NumberRange& range);

}  // namespace tocsin::config
