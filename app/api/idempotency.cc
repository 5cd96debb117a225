#include "app/api/idempotency.h"

#include <algorithm>

#include "app/serve/problem.h"
#include "core/identity.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kLongestKey = 255;
constexpr char kBetween = '\x1F';

std::array<std::uint8_t, 32> hash_of_request(const HttpRequest& request) {
  return core::sha256(std::string(request.method) + kBetween + std::string(request.path) +
                      kBetween + std::string(request.query) + kBetween + std::string(request.body));
}

}  // namespace

std::optional<HttpAnswer> Idempotency::known(const Hash& key, const Hash& request) {
  const core::Duration now = clock_.monotonic();
  const core::MutexLock lock(mutex_);
  for (auto i = kept_.begin(); i != kept_.end();) {
    const bool gone = i->second.answer && i->second.ends <= now;
    if (gone) bytes_ -= i->second.answer->body.size();
    i = gone ? kept_.erase(i) : std::next(i);
  }
  const auto [found, is_new] = kept_.try_emplace(key);
  if (is_new) {
    found->second = {request, std::nullopt, now + kKept};
    return std::nullopt;
  }
  if (found->second.request != request) {
    return problem(422, "idempotency-key",
                   "another request has used this Idempotency-Key; send a new one");
  }
  if (!found->second.answer) {
    HttpAnswer out = problem(409, "in-progress", "the first such request is still being answered");
    out.headers.emplace_back("Retry-After", "1");
    return out;
  }
  HttpAnswer again = *found->second.answer;
  again.headers.emplace_back("Idempotent-Replayed", "true");
  return again;
}

void Idempotency::keep(const Hash& key, const HttpAnswer& answer) {
  const core::MutexLock lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return;
  if (answer.status >= 500) {
    kept_.erase(found);
    return;
  }
  found->second.answer = answer;
  bytes_ += answer.body.size();
  while (kept_.size() > kMost || bytes_ > kMostBytes) {
    auto oldest = kept_.end();  // those that are being made stay
    for (auto i = kept_.begin(); i != kept_.end(); ++i) {
      if (i->second.answer && (oldest == kept_.end() || i->second.ends < oldest->second.ends))
        oldest = i;
    }
    if (oldest == kept_.end()) return;
    bytes_ -= oldest->second.answer->body.size();
    kept_.erase(oldest);
  }
}

HttpAnswer Idempotency::once(const ApiCall& call, const std::function<HttpAnswer()>& act) {
  const std::string_view given = call.request.header("idempotency-key");
  if (given.empty()) return act();
  if (given.size() > kLongestKey) {
    return problem(400, "idempotency-key", "an Idempotency-Key has at most 255 characters",
                   "Idempotency-Key");
  }
  const Hash key = core::sha256(call.who.name + kBetween + std::string(given));
  if (auto before = known(key, hash_of_request(call.request))) return std::move(*before);
  HttpAnswer out = problem(500, "internal", "the request could not be answered");
  try {
    out = act();
  } catch (...) {
    keep(key, out);  // not kept: the next one tries again
    throw;
  }
  keep(key, out);
  return out;
}

}  // namespace tocsin::app
