#include "actions/delivery/before_restart.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "actions/contract/message_fault.h"
#include "actions/delivery/pacing.h"

namespace tocsin::actions {
namespace {

std::uint32_t number_of(std::string_view text) {
  std::uint32_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

const Retry& BeforeRestart::attempted(const core::Delivery& delivery) {
  Retry& retry = retries_[known_as(delivery)];
  retry.attempts = std::max(retry.attempts, delivery.attempt);
  retry.own_failures =
      std::max(retry.own_failures, number_of(value_of(delivery.handles, kept::kOwnFailures)));
  retry.minimal = retry.minimal || delivery.outcome == core::OutcomeClass::bad_payload ||
                  MessageFault(retry.own_failures).proven();
  if (delivery.next_attempt_at) {
    retry.not_before = *delivery.next_attempt_at;
    retry.wait = std::clamp<core::Duration>(retry.not_before - delivery.stages.answered,
                                            core::Duration{}, kLongestThrottle);
  }
  if (delivery.outcome == core::OutcomeClass::unknown) retry.maybe_announced = true;
  if (delivery.outcome != core::OutcomeClass::configuration) {
    retry.misconfigured_since.reset();
  } else if (!retry.misconfigured_since) {
    retry.misconfigured_since = delivery.stages.answered;
  }
  return retry;
}

bool BeforeRestart::finished(const core::Delivery& delivery) {
  for (const auto& [name, value] : delivery.handles) {
    if (name == kept::kSupersededBy && delivery.kind == core::NotificationKind::open) {
      promoted_.insert(value);
    }
  }
  for (const std::string& one : values_of(delivery.handles, kept::kPutOff)) {
    owed_[known_as(delivery)].push_back(one.substr(0, one.find(' ')));
  }
  const auto retry = take_retry(known_as(delivery));
  return retry && retry->maybe_announced;
}

std::optional<Retry> BeforeRestart::take_retry(const std::string& id) {
  auto retry = retries_.extract(id);
  if (!retry) return std::nullopt;
  return retry.mapped();
}

void BeforeRestart::recall(Item& item, core::WallTime now) {
  const auto retry = take_retry(known_as(item));
  if (!retry) return;
  item.attempts = item.failures = retry->attempts;
  // Written by another clock, perhaps one that has stepped back since: never longer than meant.
  item.not_before = std::min(retry->not_before, now + retry->wait);
  item.maybe_announced = retry->maybe_announced;
  item.misconfigured_since = retry->misconfigured_since;
  item.fault = MessageFault(retry->own_failures);
  if (retry->minimal) item.notification = short_form(*item.notification);
}

std::vector<std::string> BeforeRestart::take_owed(const std::string& id) {
  auto owed = owed_.extract(id);
  if (!owed) return {};
  return std::move(owed.mapped());
}

}  // namespace tocsin::actions
