#include "app/cli/simulate_command.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "app/cli/looking.h"
#include "app/config/app_config.h"
#include "app/config/config_path.h"
#include "app/process/exit_code.h"
#include "app/recordings/recording.h"
#include "app/view/simulated_events.h"
#include "app/view/view_words.h"
#include "core/system_clock.h"
#include "core/visible_text.h"
#include "routing/routing.h"

namespace tocsin::app {
namespace {

/// What one look at a group came to.
struct TimelineEntry {
  core::WallTime at{};
  routing::Decision decision;
  core::Notification notification;  // empty id: nobody had to be told
};

std::string entry_text(const TimelineEntry& entry) {
  const core::Notification& message = entry.notification;
  std::string out = core::to_rfc3339(entry.at) + "  ";
  if (message.notification_id.empty()) {
    return out + core::visible(entry.decision.integration, 100) + "  " +
           core::visible(entry.decision.reason, 40) + "  route " +
           core::visible(entry.decision.route_id, 200) + "  group " +
           core::visible(entry.decision.group_key, 200) + "\n";
  }
  out += core::visible(message.integration, 100) + "  " + std::string(to_string(message.kind)) +
         ", " + core::visible(message.reason, 40) + "  route " +
         core::visible(message.route_id, 200) + "  group " + core::visible(message.group_key, 200) +
         "\n";
  if (!message.issues.empty()) out += "  " + issue_headline(message.issues.front().issue);
  const std::uint64_t others = message.firing_count + message.resolved_count;
  if (others > 1) out += " and " + std::to_string(others - 1) + " more";
  return out + "\n";
}

core::Value entry_value(const TimelineEntry& entry) {
  const core::Notification& message = entry.notification;
  const bool told = !message.notification_id.empty();
  core::ValueMap out{
      {"at", core::to_rfc3339(entry.at)},
      {"route_id", told ? message.route_id : entry.decision.route_id},
      {"group_key", told ? message.group_key : entry.decision.group_key},
      {"integration", told ? message.integration : entry.decision.integration},
      {"reason", told ? message.reason : entry.decision.reason},
      {"kind", told ? core::Value(std::string(to_string(message.kind))) : core::Value()}};
  if (!told) return out;
  out.emplace_back("notification_id", message.notification_id);
  out.emplace_back("headline", message.issues.empty()
                                   ? std::string()
                                   : issue_headline(message.issues.front().issue));
  out.emplace_back("firing", message.firing_count);
  out.emplace_back("resolved", message.resolved_count);
  return out;
}

/// The router of a configuration between its events. Every message arrives at once.
class SimulatedRouter {
 public:
  SimulatedRouter(std::unique_ptr<routing::Router> router, core::WallTime begin)
      : router_(std::move(router)), now_(begin) {
    router_->restored(begin);
  }

  /// When something falls due before `until`; nullopt: nothing does.
  [[nodiscard]] std::optional<core::WallTime> due_before(core::WallTime until) const {
    const auto due = router_->next_deadline();
    if (!due || *due >= until) return std::nullopt;
    return std::max(*due, now_);
  }
  std::vector<TimelineEntry> step(core::WallTime now) {
    std::vector<TimelineEntry> out;
    now_ = now;
    bool more = true;
    while (more) {
      more = router_->tick(now);
      note(router_->take(), out);
    }
    return out;
  }
  std::vector<TimelineEntry> handle(const SimulatedEvent& event) {
    now_ = std::max(now_, event.at);
    std::visit([this](const auto& what) { take(what); }, event.what);
    return step(now_);
  }

 private:
  void take(const core::Issue& issue) { router_->on_issue(issue, now_); }
  void take(const core::JobEvent& job) { router_->on_job(job, now_); }
  void take(const core::Command& command) { router_->on_stop(command, now_); }
  void take(const StopWithdrawn& stop) { router_->on_stop_withdrawn(stop.run); }
  void take(const core::Ack& ack) { router_->on_ack(ack, now_); }
  // What is refused was refused then too.
  void take(const ControlEvent& control) {
    (void)router_->on_control(
        control.key, control.value ? std::optional<std::string_view>(*control.value) : std::nullopt,
        now_);
  }

  void note(routing::Output decided, std::vector<TimelineEntry>& out) {
    for (routing::Decision& decision : decided.decisions) {
      const bool told = std::any_of(decided.notifications.begin(), decided.notifications.end(),
                                    [&](const auto& message) {
                                      return message.integration == decision.integration &&
                                             message.group_key == decision.group_key;
                                    });
      if (!told) out.push_back({now_, std::move(decision), {}});
    }
    for (core::Notification& message : decided.notifications) {
      router_->on_delivery(arrival(message), now_);
      out.push_back({now_, {}, std::move(message)});
    }
  }

  static core::Delivery arrival(const core::Notification& message) {
    core::Delivery out;
    out.notification_id = message.notification_id;
    out.integration = message.integration;
    out.group_key = message.group_key;
    out.route_id = message.route_id;
    out.kind = message.kind;
    out.state = core::DeliveryState::delivered;
    return out;
  }

  std::unique_ptr<routing::Router> router_;
  core::WallTime now_{};
};

core::Result<std::unique_ptr<routing::Router>> router_of(const AppConfig& config) {
  routing::RouterOptions options;
  options.limits = config.router;
  options.inhibit_rules = config.inhibit_rules;
  options.config_version = config.version;
  options.source =
      "/" + (config.cluster.empty() ? "" : config.cluster + "/") + std::string("router");
  return routing::Router::create(config.route, rule_actions(config.rules),
                                 routing_integrations(config.receivers), std::move(options));
}

core::Result<std::vector<SimulatedEvent>> events_for(const SimulateOptions& options,
                                                     const EventSpan& span) {
  if (options.events.empty()) {
    Looking looking;
    if (auto opened = looking.open(options.config_file, options.out); !opened) {
      return opened.error();
    }
    return events_of_topics(looking.transport(), span);
  }
  std::ifstream file(options.events);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return core::not_found("cannot read " + options.events);
  auto events = events_of_lines(text.str(), span);
  if (events) return events;
  return core::Error{core::Code::data_loss, options.events + ": " + events.error().message};
}

core::Result<EventSpan> event_span_of(const SimulateOptions& options) {
  const core::WallTime now = core::SystemClock().now();
  EventSpan out;
  for (const auto& [name, text, bound] : {std::tuple("--since", &options.since, &out.since),
                                          std::tuple("--until", &options.until, &out.until)}) {
    const auto parsed = parse_bound(name, *text, now);
    if (!parsed) return parsed.error();
    if (parsed->offset)
      return core::invalid_argument(std::string(name) + " takes a time or a span");
    *bound = parsed->time;
  }
  return out;
}

void print(const std::vector<TimelineEntry>& entries, const SimulateOptions& options) {
  for (const TimelineEntry& entry : entries) {
    if (entry.notification.notification_id.empty() && !options.decisions) continue;
    std::cout << (options.json ? core::to_json(entry_value(entry)) + "\n" : entry_text(entry));
  }
  std::cout.flush();
}

// As long as it took then, divided by the speed.
void pass(core::WallTime from, core::WallTime to, double speed) {
  if (speed <= 0 || to <= from) return;
  std::this_thread::sleep_for(std::chrono::duration<double>(to - from) / speed);
}

void play(const std::vector<SimulatedEvent>& events, SimulatedRouter router,
          const SimulateOptions& options) {
  core::WallTime now = events.front().at;
  const auto move_to = [&](core::WallTime then) {
    pass(now, then, options.speed);
    now = std::max(now, then);
  };
  const auto run_until = [&](core::WallTime until) {
    while (const auto due = router.due_before(until)) {
      move_to(*due);
      print(router.step(*due), options);
    }
  };
  for (const SimulatedEvent& event : events) {
    run_until(event.at);
    move_to(event.at);
    print(router.handle(event), options);
  }
  run_until(now + options.after);
}

}  // namespace

int simulate_command(const SimulateOptions& options) {
  config::Diagnostics diagnostics;
  const AppConfig config =
      load_config(config_path(options.config_file), config::process_environment(), diagnostics);
  if (diagnostics.has_errors()) {
    for (const auto& item : diagnostics.items()) std::cerr << config::to_text(item) << "\n";
    return kConfiguration;
  }
  const auto span = event_span_of(options);
  if (!span) {
    std::cerr << "tocsin: " << span.error().message << "\n";
    return kUsage;
  }
  auto router = router_of(config);
  if (!router) return refuse(router.error());
  const auto events = events_for(options, *span);
  if (!events) return refuse(events.error());
  if (events->empty()) {
    if (!options.json) std::cout << "no events\n";
    return kOk;
  }
  play(*events, SimulatedRouter(std::move(*router), events->front().at), options);
  return kOk;
}

}  // namespace tocsin::app
