// Parts of a URL: percent escapes, and the parameters of a query.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace tocsin::app {

/// With its percent escapes decoded (RFC 3986, 2.1); nullopt: an escape is cut off or not hexadecimal.
std::optional<std::string> decoded_part(std::string_view text);

/// The parameters of a query, in their order; a name may stand several times.
class UrlQuery {
 public:
  /// `a=1&b=%7Bx%7D`; `+` is a blank, a name without '=' has an empty value. invalid_argument: a wrong
  /// escape.
  static core::Result<UrlQuery> parse(std::string_view text);

  /// The last value of that name.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// True or false as written, `otherwise` where it is not given. invalid_argument: anything else.
  [[nodiscard]] core::Result<bool> flag(std::string_view name, bool otherwise) const;
  /// invalid_argument: a name that is none of these, with the nearest one.
  [[nodiscard]] core::Status only(std::span<const std::string_view> known) const;
  /// The first name that is none of these; empty: all are.
  [[nodiscard]] std::string first_unknown(std::span<const std::string_view> known) const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

}  // namespace tocsin::app
