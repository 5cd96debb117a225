// A router with a hand-moved clock and a changelog in memory, for the tests of routing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "routing/routing.h"

namespace tocsin::routing {

using namespace std::chrono_literals;

inline const core::WallTime kStart = core::wall_time(1'767'323'000'000'000'000);

/// A receiver with one webhook of the same name.
Integration webhook(const std::string& name);

inline const std::string kRun = "4e3046d4-8c1f-5278-82e3-ea3595bc5999";

/// Keeps everything a router gave out, and moves time from deadline to deadline.
class Harness {
 public:
  Harness();

  // Set before open().
  RouteConfig tree;
  std::vector<RuleActions> rule_actions;
  std::vector<Integration> integrations{webhook("oncall")};
  RouterOptions options;
  std::vector<std::pair<std::string, std::string>> silenced;  // label = value: a silence now
  /// What becomes of a message at once after its commit; unset: nobody reports.
  std::function<core::DeliveryState(const core::Notification&)> fate;

  /// (Re)starts the router from the changelog at the present time.
  void open();
  /// Moves to kStart + `since`, ticking at every deadline on the way.
  void at(core::Duration since);
  /// Forgets what was not committed, as kill -9 does, and starts again.
  void crash() { open(); }
  void commit();
  /// The machine is off until then; open() starts it again.
  void stop_until(core::Duration since) { now_ = kStart + since; }

  core::Issue issue(const core::Labels& labels, core::IssueStatus status);
  /// Explicit expiry, begun and reported now; committed.
  void fire(const core::Labels& labels);
  void resolve(const core::Labels& labels);
  void report(const core::Issue& issue);
  void job(core::JobPhase phase, std::uint32_t attempt);
  void deliver(const core::Notification& notification, core::DeliveryState state);

  /// Messages since the last call, as "reason kind integration firing/resolved".
  std::vector<std::string> said();
  Router& router() { return *router_; }
  [[nodiscard]] core::WallTime now() const { return now_; }

  std::map<std::string, std::string> changelog;
  std::vector<core::Notification> sent;
  std::vector<Transition> transitions;
  std::vector<Decision> decisions;
  std::vector<Further> further;
  std::vector<StateRecord> control;  // records of `router-control` that nobody has read yet

 private:
  void keep(Output output);
  void settle(const core::Notification& notification, core::DeliveryState state);

  std::unique_ptr<Router> router_;
  core::WallTime now_ = kStart;
  std::uint64_t sequence_ = 0;
  std::size_t read_ = 0;
};

}  // namespace tocsin::routing
