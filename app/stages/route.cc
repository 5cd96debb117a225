#include "app/stages/route.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/report/gather.h"
#include "app/stages/router_figures.h"
#include "app/view/events_log.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::int32_t kStatePartition = 0;  // one leader owns all state
/// Kafka's default for a message is 1 MiB, its key and headers included.
constexpr std::size_t kMaxRecord = 1'000'000;
// Records that changed nothing are read again after a crash, and change nothing again: their positions
// may wait, so that a stream of alerts that are only said again does not make a commit of each batch.
constexpr core::Duration kPositionsEvery = std::chrono::milliseconds(100);

actions::FiringIssues::Issue shown_of(const routing::FiringView& view) {
  return {view.run, view.attempt, view.rule, view.shadow};
}

// An issue that is only said again is not decoded: whoever reads the board knows its attempt from the
// report before it.
bool says_again(routing::Router& router, const core::RecordView& record, core::WallTime now,
                std::optional<routing::Outline>& outline) {
  const auto found = ingest::outline_of(record);
  if (!found) return false;
  outline = found->rest;
  routing::Repeat repeat{found->rest, found->source, found->id, found->sequence, {}, {}};
  repeat.time = found->time.value_or(core::WallTime{});
  repeat.starts_at = found->starts_at.value_or(found->time.value_or(now));
  return router.on_repeat(repeat, now);
}

// Of a page that was written: its address, else its path. Of one that could not be: nothing.
std::string where_of(const core::RuleStatusEvent& written) {
  for (const std::string_view key : {"url", "path"}) {
    const core::Value* value = core::find(written.summary, key);
    const auto* text = value == nullptr ? nullptr : core::as<std::string>(*value);
    if (text != nullptr) return *text;
  }
  return {};
}

}  // namespace

class RouteStage::Probe {
 public:
  Probe(core::Telemetry& telemetry, const std::vector<routing::Integration>& integrations,
        const std::string& config_version)
      : sink_(telemetry),
        figures_(telemetry),
        lag_(telemetry.gauge("tocsin_router_event_lag_seconds",
                             "how far behind the newest event the router is; 0: it has read all")) {
    telemetry
        .gauge("tocsin_router_config_hash_info", "the configuration in effect: 1",
               {{"hash", config_version}})
        .set(1);
    for (const routing::Integration& one : integrations) {
      origins_.insert(one.id);
      template_errors_.emplace(one.id, &telemetry.counter("tocsin_router_template_errors_total",
                                                          "messages that could not be rendered",
                                                          {{"integration", one.id}}));
    }
  }

  void report(const routing::Output& output) {
    for (const auto& one : output.decisions) {
      sink_
          .counter("tocsin_router_decisions_total", "looks at a group, per integration and reason",
                   {{"integration", one.integration}, {"reason", one.reason}})
          .add();
    }
    for (const routing::Further& one : output.further) report(one);
    for (const std::string& origin : output.ack_origins) {
      sink_
          .counter("tocsin_router_acks_total", "acknowledgements taken on, by where they came from",
                   {{"origin", origins_.contains(origin) ? origin : "other"}})
          .add();
    }
    for (const routing::FlushDelay& one : output.flush_delays) {
      sink_
          .histogram("tocsin_router_flush_late_seconds", "a group's flush behind its tick",
                     {{"route", figures_.route(one.route_id)}})
          .observe(std::chrono::duration<double>(one.late).count());
    }
    for (const auto& one : output.transitions) {
      sink_
          .counter(
              "tocsin_router_issue_transitions_total", "episodes begun and ended",
              {{"to", core::to_string(one.to)}, {"resolution", core::to_string(one.resolution)}})
          .add();
    }
  }
  void render_failed(const std::string& integration) {
    const auto found = template_errors_.find(integration);
    if (found != template_errors_.end()) found->second->add();
  }
  void measure(const routing::Router& router, core::Duration behind) {
    lag_.set(std::chrono::duration<double>(behind).count());
    figures_.update(router);
  }
  void start_over() { figures_.start_over(); }

 private:
  void report(const routing::Further& one) {
    if (one.step) {
      sink_
          .counter("tocsin_router_escalations_total", "steps of escalation carried out, from 1",
                   {{"route", one.route_id}, {"step", std::to_string(*one.step + 1)}})
          .add();
    } else {
      sink_
          .counter("tocsin_router_fallbacks_total", "backups told of what did not arrive",
                   {{"integration", one.failed}, {"receiver", one.receiver}})
          .add();
    }
  }

  core::Telemetry& sink_;
  std::set<std::string> origins_{"cli", "api"};  // that are a label
  RouterFigures figures_;
  core::Gauge& lag_;
  std::map<std::string, core::Counter*> template_errors_;  // by integration
};

RouteStage::RouteStage(RouteOptions options, RunBoard* board, Render render, ShowAgain show_again,
                       core::Log& log, core::Telemetry& telemetry)
    : options_(std::move(options)),
      board_(board),
      render_(std::move(render)),
      show_again_(std::move(show_again)),
      log_(log),
      stats_(telemetry),
      probe_(std::make_unique<Probe>(telemetry, options_.integrations, options_.config_version)) {
  wiring_.name = "route";
  wiring_.part = "router";
  wiring_.group = options_.topic_prefix + "-router";
  wiring_.topics = {core::topic::kIssues, core::topic::kRouterDeliveries,
                    core::topic::kRouterControl, core::topic::kCommands, core::topic::kAcks};
  wiring_.transactional_id = options_.topic_prefix + "-router";
  wiring_.writer = "router";
  wiring_.state_topic = core::topic::kRouterState;
  wiring_.state = StateScope::whole;
  wiring_.state_partitions = kStatePartition + 1;
  wiring_.leader = true;
  wiring_.fetch_wait = std::chrono::milliseconds(100);  // what comes ends it at once
  wiring_.batch = 4096;
  wiring_.commit_every = kPositionsEvery;
}

RouteStage::~RouteStage() = default;

core::Status RouteStage::open(const Instant& /*now*/) {
  routing::RouterOptions options;
  options.limits = options_.limits;
  options.inhibit_rules = options_.inhibit_rules;
  options.time_intervals = options_.time_intervals;
  options.config_version = options_.config_version;
  options.source =
      "/" + (options_.cluster.empty() ? "" : options_.cluster + "/") + std::string("router");
  auto router = routing::Router::create(options_.route, options_.rule_actions,
                                        options_.integrations, options);
  if (!router) return router.error();
  router_ = std::move(*router);
  inputs_.clear();
  newest_.clear();
  damaged_.clear();
  restored_ = false;
  if (firing_ != nullptr) firing_->start_over();
  stats_.start_over();
  probe_->start_over();
  unreported_.clear();
  return core::ok();
}

core::Status RouteStage::restore(std::int32_t /*partition*/, const core::RecordView& record) {
  // Newest per key wins; read_all gives them in log order, and a tombstone takes back.
  const std::string key(record.key.value_or(""));
  if (routing::Router::restores_as_read(key)) {
    restore_at_once(key, record);
  } else if (record.tombstone) {
    newest_.erase(key);
  } else {
    newest_[key] = std::string(record.text());
  }
  return core::ok();
}

void RouteStage::restore_at_once(const std::string& key, const core::RecordView& record) {
  damaged_.erase(key);
  if (record.tombstone) return router_->restore_gone(key);
  const auto status = router_->restore(key, record.text());
  if (status) return;
  router_->restore_gone(key);
  damaged_.emplace(key, status.error());
}

core::Result<std::vector<core::Position>> RouteStage::restored(std::int32_t partition,
                                                               std::span<const core::Position>,
                                                               const Instant& now) {
  inputs_.insert(partition);
  if (restored_) return std::vector<core::Position>{};
  std::optional<core::Error> damaged;
  if (!damaged_.empty()) damaged = damaged_.begin()->second.in(damaged_.begin()->first);
  // One after the other: what a record took is there for the issue that is made of it.
  while (!newest_.empty()) {
    const auto record = newest_.extract(newest_.begin());
    const auto status = router_->restore(record.key(), record.mapped());
    if (!status && !damaged) damaged = status.error().in(record.key());
  }
  router_->restored(now.wall);
  restored_ = true;
  show_firing();
  if (damaged) return *damaged;
  return std::vector<core::Position>{};
}

void RouteStage::note_episodes(const std::vector<routing::Transition>& transitions) const {
  if (firing_ == nullptr) return;
  for (const routing::Transition& one : transitions) {
    if (one.to == core::IssueStatus::resolved) {
      firing_->over(one.issue_key, one.episode);
    } else if (const auto view = router_->find_firing(one.issue_key)) {
      firing_->began(one.issue_key, one.episode, shown_of(*view));
    }
  }
}

void RouteStage::show_firing() const {
  if (firing_ != nullptr) {
    router_->for_each_firing([this](const routing::FiringView& view) {
      firing_->began(std::string(view.issue_key), view.episode, shown_of(view));
    });
    firing_->complete();
  }
  if (!show_again_) return;
  router_->for_each_issue([&](const routing::IssueView& view) {
    if (!view.firing) return;
    std::vector<std::string> integrations;
    for (const auto& leaf : router_->explain(view.issue.labels).leaves) {
      integrations.insert(integrations.end(), leaf.integrations.begin(), leaf.integrations.end());
    }
    show_again_(view, integrations);
  });
}

std::optional<Refusal> RouteStage::handle(const core::RecordView& record,
                                          const StageContext& context) {
  const core::WallTime now = context.now.wall;
  if (record.topic == core::topic::kRouterDeliveries) {
    const auto delivery = ingest::decode_delivery(record);
    if (!delivery) return Refusal{"bad_delivery", delivery.error().message};
    router_->on_delivery(*delivery, now);
    return std::nullopt;
  }
  if (record.topic == core::topic::kRouterControl) {
    const auto value = record.tombstone ? std::nullopt : std::optional(record.text());
    const auto taken = router_->on_control(record.key.value_or(""), value, now);
    if (!taken) return Refusal{"bad_control", taken.error().message};
    return std::nullopt;
  }
  if (record.topic == core::topic::kCommands || record.topic == core::topic::kAcks) {
    note_stop(record, now);
    return std::nullopt;
  }
  std::optional<routing::Outline> outline;
  if (says_again(*router_, record, now, outline)) return std::nullopt;
  auto decoded = ingest::decode_event(record);
  if (!decoded) return Refusal{"bad_event", decoded.error().message};
  if (auto* issue = std::get_if<core::Issue>(&decoded->event)) {
    if (!decoded->has_starts_at) issue->starts_at = decoded->envelope.time.value_or(now);
    if (board_ != nullptr) board_->note_attempt(issue->run.uid, issue->run.attempt);
    router_->on_issue(std::move(*issue), now, outline);
  } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
    if (board_ != nullptr) board_->note(*job);
    router_->on_job(*job, now);
  } else if (const auto* rule = std::get_if<core::RuleStatusEvent>(&decoded->event)) {
    if (rule->rule == report::kReportRule) router_->on_report(rule->run, where_of(*rule), now);
  }
  return std::nullopt;
}

// What cannot be read of these two topics is told by the stage that keeps the board of runs.
void RouteStage::note_stop(const core::RecordView& record, core::WallTime now) {
  if (record.topic == core::topic::kAcks) {
    if (const auto ack = ingest::decode_ack(record)) router_->on_ack(*ack, now);
    return;
  }
  const auto decoded = ingest::decode_command(record);
  if (!decoded || decoded->action != "stop") return;
  if (decoded->command) {
    router_->on_stop(*decoded->command, now);
  } else {
    router_->on_stop_withdrawn(decoded->run);
  }
}

std::optional<core::Duration> RouteStage::tick(const StageTick& tick) {
  if (!restored_) return std::nullopt;
  const bool live =
      std::all_of(inputs_.begin(), inputs_.end(), [&](std::int32_t one) { return tick.live(one); });
  router_->set_behind(!live, tick.now.wall);
  core::Duration read_until = tick.now.steady;
  for (const std::int32_t one : inputs_) {
    read_until = std::min(read_until, tick.read_until(one).value_or(core::Duration::zero()));
  }
  router_->set_read_until(tick.now.wall - (tick.now.steady - read_until));
  const bool more = router_->tick(tick.now.wall);
  stats_.update(router_->stats(), tick.now.wall);
  if (tick.now.steady - measured_ >= std::chrono::seconds(1)) {
    measured_ = tick.now.steady;
    probe_->measure(*router_, live ? core::Duration::zero() : tick.now.steady - read_until);
  }
  if (more) return tick.now.steady;
  const auto deadline = router_->next_deadline();
  if (!deadline) return std::nullopt;
  return tick.now.steady + (*deadline - tick.now.wall);
}

StageOutput RouteStage::take(const Instant& now) {
  StageOutput out;
  if (!restored_) return out;
  routing::Output decided = router_->take();
  probe_->report(decided);
  note_episodes(decided.transitions);
  for (const routing::Transition& one : decided.transitions) {
    if (show_end_ && one.to == core::IssueStatus::resolved) {
      show_end_(one.issue_key, one.episode, now.wall);
    }
  }
  for (auto& notification : decided.notifications) {
    auto rendered = render_(notification);
    if (rendered) {
      notification.rendered = std::move(*rendered);
    } else {
      probe_->render_failed(notification.integration);
      log_.error("render_failed",
                 {{"integration", notification.integration}, {"error", rendered.error().message}});
    }
    core::OutRecord record = ingest::encode_notification(notification);
    if (record.value && record.value->size() > kMaxRecord) {
      notification.rendered.clear();  // each attempt makes it anew of the issues
      record = ingest::encode_notification(notification);
    }
    out.records.push_back({kStatePartition, std::move(record)});
    unreported_.add(std::move(notification));
  }
  for (auto& entry : decided.state) {
    core::OutRecord record{core::topic::kRouterState, std::move(entry.key), std::move(entry.value)};
    record.partition = kStatePartition;
    out.records.push_back({kStatePartition, std::move(record), false, entry.waits});
  }
  for (auto& entry : decided.control) {
    core::OutRecord record{core::topic::kRouterControl, std::move(entry.key),
                           std::move(entry.value)};
    record.partition = kStatePartition;
    out.records.push_back({kStatePartition, std::move(record)});
  }
  return out;
}

void RouteStage::committed(const Instant& /*now*/) {
  unreported_.committed(
      [this](const core::Notification& notification) { log_notification(log_, notification); });
}

}  // namespace tocsin::app
