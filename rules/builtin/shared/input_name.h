// The inputs of a module by their names: <module>_input_0 is the data, _input_1 and so on come beside it.
#pragma once

#include <algorithm>
#include <string_view>

namespace tocsin::rules {

/// Whether it is a further input. Such may be the same for all samples by design: the first state of a
/// recurrent cell, a mask, a step size.
inline bool is_further_input(std::string_view name) {
  constexpr std::string_view kInput = "_input_";
  const std::size_t at = name.rfind(kInput);
  if (at == std::string_view::npos) return false;
  const std::string_view number = name.substr(at + kInput.size());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !number.empty() && std::all_of(number.begin(), number.end(), is_digit) && number != "0";
}

}  // namespace tocsin::rules
