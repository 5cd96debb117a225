// Ends jobs of a platform that has no adapter of its own, by requests that an operator has written
// (docs/stopping-on-platforms.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actions/platform/platform_http.h"
#include "core/clock.h"

namespace tocsin::actions {

/// One condition of an answer: all that is given must hold.
struct AnswerIs {
  std::vector<std::string> status;  // "200", "2xx"; empty: any
  std::string at;               // "job.state": a place in the answer's JSON; empty: none is asked
  std::vector<std::string> in;  // what may stand there; {{fence.x}} is replaced
  [[nodiscard]] bool given() const { return !status.empty() || !at.empty(); }
};

struct WebhookRequest {
  std::string method;
  std::string path;  // behind the URL; {{fence.x}} is replaced, percent-encoded
  std::string body;  // JSON; {{fence.x}} is replaced, as text in quotes
};

struct WebhookStopConfig {
  PlatformPlace place;
  std::vector<std::string> platforms;  // that it ends
  std::vector<std::string> needs;      // names that a fence must have
  WebhookRequest status{"GET", "", ""};
  WebhookRequest stop{"POST", "", ""};
  WebhookRequest force{"POST", "", ""};  // path empty: there is none
  AnswerIs running, gone, stale;         // of `status`
  AnswerIs taken;                        // of `stop`
  config::Secret secret;                 // signs, as the action `webhook` does
};
void read(config::Reader& in, WebhookStopConfig& cfg);
std::unique_ptr<PlatformStop> make_webhook_stop(const WebhookStopConfig& cfg, core::Clock& clock,
                                                HttpClient* http);

/// The text with {{fence.name}} replaced by what `put` makes of it; nullopt: a name that the fence does
/// not have, or a brace that is never closed.
std::optional<std::string> with_fence(std::string_view text, const core::Value& fence,
                                      std::string (*put)(const std::string&));

}  // namespace tocsin::actions
