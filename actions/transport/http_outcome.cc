// What an HTTP exchange means for a delivery: pure.
#include <algorithm>
#include <charconv>

#include "actions/transport/http_client.h"
#include "actions/transport/http_date.h"

namespace tocsin::actions {

using core::AttemptOutcome;
using core::Duration;
using core::OutcomeClass;
using core::WallTime;

namespace {

OutcomeClass class_of(int status) {
  if (status >= 200 && status < 300) return OutcomeClass::delivered;
  if (status >= 300 && status < 400) return OutcomeClass::bad_payload;  // never followed
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
      return OutcomeClass::transient;
    case 501:
    case 505:
      return OutcomeClass::bad_payload;
    default:  // what nobody knows is what its class is: 500, 400 (RFC 9110 §15)
      return status >= 500 ? OutcomeClass::transient : OutcomeClass::bad_payload;
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
    case HttpFailure::not_sent:
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
    case HttpFailure::not_sent:
      return "not_sent";
  }
  return "";
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::optional<Duration> parse_retry_after(std::string_view text, WallTime now) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (digits) {
    std::int64_t seconds = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (read.ec != std::errc{}) return kLongestRetryAfter;  // more than any number that we know
    return std::min<Duration>(std::chrono::seconds(std::min<std::int64_t>(seconds, 86'400)),
                              kLongestRetryAfter);
  }
  if (const auto at = parse_http_date(text, now)) {
    return std::clamp<Duration>(*at - now, Duration{}, kLongestRetryAfter);
  }
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
  out.retry_after = parse_retry_after(result.response.header("retry-after"), now);
  // What has no time in it, 0 or the past, asks for nothing: the far side is down, not crowded.
  const bool asks = out.retry_after && out.retry_after->count() > 0;
  if (status == 503 && asks) out.outcome = OutcomeClass::throttled;
  return out;
}

}  // namespace tocsin::actions
