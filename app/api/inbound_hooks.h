// Webhooks by which tools tell that somebody has answered an alarm there (docs/acknowledge.md).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/inbound_event.h"
#include "app/serve/http_routes.h"
#include "app/serve/inbound_config.h"
#include "core/mutex.h"
#include "core/telemetry.h"

namespace tocsin::app {

/// Thread-safe.
class InboundHooks {
 public:
  /// All outlive it.
  InboundHooks(std::vector<InboundHook> hooks, ApiDesk& desk, core::Telemetry& telemetry);
  ~InboundHooks();
  InboundHooks(const InboundHooks&) = delete;
  InboundHooks& operator=(const InboundHooks&) = delete;

  /// POST /hooks/<name>; none where none is configured. They live no longer than this.
  [[nodiscard]] std::vector<HttpRoute> routes();

 private:
  [[nodiscard]] HttpAnswer answer(const HttpRequest& request, const std::string& name);
  [[nodiscard]] HttpAnswer refuse(const InboundHook* hook, const HttpRequest& request);
  [[nodiscard]] bool is_from(const InboundHook& hook, const HttpRequest& request) const;
  [[nodiscard]] HttpAnswer answer_slack(const InboundHook& hook, const HttpRequest& request);
  [[nodiscard]] HttpAnswer follow(const InboundHook& hook, const HttpRequest& request,
                                  const InboundEvent& event);
  [[nodiscard]] bool was_done(const std::string& id);
  void done(const std::string& id);

  std::vector<InboundHook> hooks_;
  ApiDesk& desk_;
  std::map<std::string, core::Counter*> failures_;         // by name of the hook
  struct Clicks;                                           // of one hook
  std::map<std::string, std::unique_ptr<Clicks>> clicks_;  // by name of the hook
  core::Mutex mutex_;
  std::set<std::string> done_ GUARDED_BY(mutex_);  // ids of events
  std::deque<std::string> order_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::app
