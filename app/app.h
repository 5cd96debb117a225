// The program as an object: roles on their threads, health and metrics; start, stop, address.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config/app_config.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"

namespace tocsin::app {

/// Which jobs this process does.
struct Roles {
  bool collect = false;
  bool evaluate = false;
  bool route = false;   // decides and delivers
  bool hosted = false;  // rules that are processes of their own
};

struct AppOptions {
  Roles roles;
  std::string host;           // name of this machine
  std::string notify_socket;  // $NOTIFY_SOCKET
  std::chrono::milliseconds stop_deadline{10'000};
};

/// How a process gets at its topics; called once.
using OpenTransport =
    std::function<core::Result<std::unique_ptr<ingest::Transport>>(core::Telemetry& telemetry)>;

class App {
 public:
  /// Opens everything and starts the threads. `unavailable` when no broker or journal answers
  /// (waits up to `patience` for it), not_found for missing topics with the command that creates
  /// them.
  static core::Result<std::unique_ptr<App>> start(AppConfig config, AppOptions options,
                                                  const OpenTransport& open_transport,
                                                  core::Clock& clock, core::Log& log,
                                                  std::chrono::milliseconds patience);
  ~App();
  /// Ends the roles in order: collectors, engine, router, deliverer. Safe twice. False when the
  /// deadline passed: what was committed is safe, and the caller may exit at once.
  bool stop();
  /// Every role has restored its state and its last commit went through.
  [[nodiscard]] bool ready() const;
  /// From any thread: who judges goes on with these rules.
  void reload(const rules::RulesConfig& rules);
  /// What this process measures about itself.
  [[nodiscard]] core::Telemetry& telemetry();
  /// Where /metrics and health are served.
  [[nodiscard]] const std::string& address() const;

 private:
  struct Impl;
  explicit App(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::app
