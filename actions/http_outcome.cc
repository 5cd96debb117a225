// What an HTTP exchange means for a delivery: pure.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "actions/http_client.h"

namespace tocsin::actions {

using core::AttemptOutcome;
using core::Duration;
using core::OutcomeClass;
using core::WallTime;

namespace {

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

OutcomeClass class_of(int status) {
  if (status >= 200 && status < 300) return OutcomeClass::delivered;
  if (status >= 300 && status < 400) return OutcomeClass::bad_payload;  // never followed
  if (status >= 520 && status <= 527) return OutcomeClass::transient;
  switch (status) {
    case 401:
    case 403:
    case 404:
    case 407:
      return OutcomeClass::configuration;
    case 410:
      return OutcomeClass::gone;
    case 429:
      return OutcomeClass::throttled;
    case 408:
    case 425:
    case 500:
    case 502:
    case 503:
    case 504:
    case 507:
    case 529:
      return OutcomeClass::transient;
    default:
      return OutcomeClass::bad_payload;
  }
}

OutcomeClass class_of(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::none:
      return OutcomeClass::delivered;
    case HttpFailure::bad_request:
    case HttpFailure::blocked:
    case HttpFailure::certificate:
    case HttpFailure::proxy:
      return OutcomeClass::configuration;
    case HttpFailure::unreachable:
      return OutcomeClass::transient;
    case HttpFailure::no_answer:
      return OutcomeClass::unknown;
  }
  return OutcomeClass::unknown;
}

std::string code_of(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::none:
      return "";
    case HttpFailure::bad_request:
      return "bad_request";
    case HttpFailure::blocked:
      return "address_blocked";
    case HttpFailure::unreachable:
      return "unreachable";
    case HttpFailure::certificate:
      return "certificate";
    case HttpFailure::proxy:
      return "proxy";
    case HttpFailure::no_answer:
      return "no_answer";
  }
  return "";
}

// IMF-fixdate: "Sun, 06 Nov 1994 08:49:37 GMT"; the two obsolete forms are not sent by anybody.
std::optional<WallTime> parse_http_date(std::string_view text) {
  if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
  const auto field = [&](std::size_t at, std::size_t size) {
    int value = -1;
    const char* end = text.data() + at + size;
    const auto read = std::from_chars(text.data() + at, end, value);
    return read.ptr == end ? value : -1;
  };
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  const int day = field(5, 2);
  const int year = field(12, 4);
  const int hour = field(17, 2);
  const int minute = field(20, 2);
  const int second = field(23, 2);
  if (month == kMonths.end() || day < 0 || year < 0 || hour < 0 || minute < 0 || second < 0) {
    return std::nullopt;
  }
  std::array<char, 32> iso{};
  std::snprintf(iso.data(), iso.size(), "%04d-%02d-%02dT%02d:%02d:%02dZ", year % 10000,
                static_cast<int>(month - kMonths.begin()) + 1, day % 100, hour % 100, minute % 100,
                second % 100);
  return core::parse_rfc3339(iso.data());
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::optional<Duration> parse_retry_after(std::string_view text, WallTime now) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::uint32_t seconds = 0;
  const char* end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, seconds);
      !text.empty() && read.ec == std::errc{} && read.ptr == end) {
    return std::chrono::seconds(seconds);
  }
  if (const auto at = parse_http_date(text)) return std::max(*at - now, Duration{});
  return std::nullopt;
}

AttemptOutcome classify(const HttpResult& result, WallTime now) {
  AttemptOutcome out;
  if (result.failure != HttpFailure::none) {
    out.outcome = class_of(result.failure);
    out.code = code_of(result.failure);
    out.detail = result.detail;
    return out;
  }
  const int status = result.response.status;
  out.outcome = class_of(status);
  out.code = std::to_string(status);
  if (out.outcome == OutcomeClass::delivered) return out;
  out.detail = result.response.body;
  if (status == 429 || status == 503) {
    out.retry_after = parse_retry_after(result.response.header("retry-after"), now);
    if (out.retry_after) out.outcome = OutcomeClass::throttled;
  }
  return out;
}

}  // namespace tocsin::actions
