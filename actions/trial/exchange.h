// One request of an action and the answer to it, as an operator may see it: no credential is in it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value.h"

namespace tocsin::actions {

using HeaderLines = std::vector<std::pair<std::string, std::string>>;

struct Exchange {
  std::string request;  // "POST https://chat.example<redacted>", "publish a/b to broker:1883"
  HeaderLines request_headers;
  std::string request_body;
  std::string answer;  // "HTTP 200", "unreachable: …"; empty: nothing was sent
  HeaderLines answer_headers;
  std::string answer_body;
};

/// Masks credentials in texts of one exchange.
class ExchangeMask {
 public:
  /// `credentials`: what was opened for the request; redact() says in which forms they are masked.
  explicit ExchangeMask(std::span<const std::string> credentials);

  /// One line, everything in it visible.
  [[nodiscard]] std::string line(std::string_view text) const;
  /// The same of a URL. A URL is a credential as a whole for the sake of its path: the host is shown.
  [[nodiscard]] std::string url(std::string_view text) const;
  /// Lines, each as line() makes it.
  [[nodiscard]] std::string lines(std::string_view text) const;
  /// Headers as lines; the value of one that by its name holds a credential is masked as a whole.
  [[nodiscard]] HeaderLines headers(const HeaderLines& given) const;

 private:
  std::vector<std::string> credentials_;
};

/// {"request": …, "headers": {…}, "body": …, "answer": {…}}; `answer` is null if nothing was sent.
core::Value to_value(const Exchange& exchange);

}  // namespace tocsin::actions
