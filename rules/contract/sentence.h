// Sentences of rules, with their numbers as people read them. Apart from finding.h, because fmt is
// dear to compile.
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "rules/contract/rule.h"

namespace tocsin::rules {

namespace spoken {

template <typename T>
using Form = std::conditional_t<std::is_floating_point_v<T>, std::string, T>;

template <typename T>
auto form(const T& value)
    -> std::conditional_t<std::is_floating_point_v<T>, std::string, const T&> {
  if constexpr (std::is_floating_point_v<T>) {
    return figure(value);
  } else {
    return value;
  }
}

}  // namespace spoken

/// fmt::format, where a double is a figure(): three significant digits. The text is checked
/// against its arguments when it is compiled.
template <typename... Args>
std::string sentence(fmt::format_string<spoken::Form<Args>...> text, const Args&... args) {
  return fmt::vformat(text, fmt::make_format_args(spoken::form(args)...));
}

}  // namespace tocsin::rules
