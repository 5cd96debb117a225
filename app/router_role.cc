#include "app/router_role.h"

#include <algorithm>
#include <thread>

#include "app/events_log.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 512;
constexpr core::Duration kFirstBackoff = 50ms;
constexpr core::Duration kMaxBackoff = 5s;
constexpr const char* kStateTopic = "router-state";
constexpr std::int32_t kStatePartition = 0;  // one router owns all state

std::chrono::milliseconds until(std::optional<core::WallTime> deadline, core::WallTime now) {
  constexpr auto kLongest = std::chrono::milliseconds(100);
  if (!deadline) return kLongest;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - now);
  return std::clamp(left, std::chrono::milliseconds(1), kLongest);
}

}  // namespace

struct RouterRole::Probe {
  explicit Probe(core::Telemetry& telemetry)
      : sink(telemetry),
        received(telemetry.counter("tocsin_router_events_received_total", "issue events read")),
        duplicate(
            telemetry.counter("tocsin_router_events_duplicate_total", "issue events seen before")),
        stale(telemetry.counter("tocsin_router_events_stale_total",
                                "issue events older than what is known")),
        rejected(telemetry.counter("tocsin_router_events_rejected_total",
                                   "events sent to the dead-letter topic")),
        transactions(telemetry.counter("tocsin_router_transactions_total",
                                       "commits of decisions and state")),
        aborts(telemetry.counter("tocsin_router_transaction_aborts_total",
                                 "commits that had to be repeated")),
        flush_late(telemetry.histogram("tocsin_router_flush_late_seconds",
                                       "a group's flush behind its tick")),
        groups(telemetry.gauge("tocsin_router_groups", "groups with members")),
        firing(
            telemetry.gauge("tocsin_router_issues", "issues firing now", {{"state", "firing"}})) {}

  void decided(const std::string& integration, const std::string& reason) {
    sink.counter("tocsin_router_decisions_total", "looks at a group, per integration and reason",
                 {{"integration", integration}, {"reason", reason}})
        .add();
  }
  void transition(core::IssueStatus to, core::Resolution resolution) {
    sink.counter("tocsin_router_issue_transitions_total", "episodes begun and ended",
                 {{"to", core::to_string(to)}, {"resolution", core::to_string(resolution)}})
        .add();
  }
  void update(const routing::Stats& now) {
    received.add(static_cast<double>(now.events - seen.events));
    duplicate.add(static_cast<double>(now.duplicates - seen.duplicates));
    stale.add(static_cast<double>(now.stale - seen.stale));
    groups.set(static_cast<double>(now.groups));
    firing.set(static_cast<double>(now.firing));
    seen = now;
  }

  core::Telemetry& sink;
  core::Counter& received;
  core::Counter& duplicate;
  core::Counter& stale;
  core::Counter& rejected;
  core::Counter& transactions;
  core::Counter& aborts;
  core::Histogram& flush_late;
  core::Gauge& groups;
  core::Gauge& firing;
  routing::Stats seen;
};

RouterRole::RouterRole(ingest::Transport& transport, RouterRoleOptions options,
                       const Actions& actions, actions::IssueMetrics& issue_metrics,
                       core::Clock& clock, core::Log& log, core::Telemetry& telemetry)
    : transport_(transport),
      options_(std::move(options)),
      actions_(actions),
      issue_metrics_(issue_metrics),
      clock_(clock),
      log_(log),
      probe_(std::make_unique<Probe>(telemetry)),
      wall_anchor_(clock.now()),
      monotonic_anchor_(clock.monotonic()) {}

RouterRole::~RouterRole() = default;

core::WallTime RouterRole::now() const {
  return wall_anchor_ + (clock_.monotonic() - monotonic_anchor_);
}

core::Status RouterRole::make_router() {
  routing::RouterOptions options;
  options.limits = options_.limits;
  options.config_version = options_.config_version;
  options.source =
      "/" + (options_.cluster.empty() ? "" : options_.cluster + "/") + std::string("router");
  options.encode_issue = [](const core::Issue& issue) { return ingest::encode_issue_state(issue); };
  options.decode_issue = [](std::string_view text) { return ingest::decode_issue_state(text); };
  auto router = routing::Router::create(options_.route, options_.rule_actions,
                                        options_.integrations, options);
  if (!router) return router.error();
  router_ = std::move(*router);
  probe_->seen = {};
  return core::ok();
}

core::Status RouterRole::open() {
  if (const auto status = make_router(); !status) return status;
  ingest::SourceOptions source;
  source.group = options_.topic_prefix + "-router";
  source.topics = {"issues", "router-deliveries"};
  source.listener = this;
  source.own_writer = "router";
  auto opened = transport_.source(source);
  if (!opened) return opened.error();
  source_ = std::move(*opened);
  ingest::PublisherOptions publisher;
  publisher.writer = "router";
  publisher.transactional_id = options_.topic_prefix + "-router";
  publisher.source = source_.get();
  publisher.durable = true;
  auto made = transport_.publisher(publisher);
  if (!made) return made.error();
  publisher_ = std::move(*made);
  return core::ok();
}

void RouterRole::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const core::Duration before = clock_.monotonic();
    if (retry_at_.count() != 0 && before < retry_at_) {
      std::this_thread::sleep_for(10ms);
    } else {
      const auto wait =
          restored_ ? until(router_->next_deadline(), now()) : std::chrono::milliseconds(20);
      const auto polled =
          source_->poll(wait, kBatch, [this](const core::RecordView& record) { handle(record); });
      if (!polled && polled.error().code == core::Code::failed_precondition) {
        start_over(polled.error());
      } else if (!polled) {
        log_.warn("source_failed", {{"error", polled.error().message}});
        std::this_thread::sleep_for(100ms);
      }
    }
    restore_if_assigned();
    if (!restored_) continue;
    router_->tick(now());
    gather();
    if (clock_.monotonic() < retry_at_) continue;
    if (const auto status = commit(); !status) {
      probe_->aborts.add();
      ready_ = false;
      if (status.error().code == core::Code::failed_precondition) {
        start_over(status.error());
        continue;
      }
      backoff_ = std::min(std::max(backoff_ * 2, kFirstBackoff), kMaxBackoff);
      retry_at_ = clock_.monotonic() + backoff_;
      log_.warn("commit_failed", {{"error", status.error().message}});
    } else {
      retry_at_ = backoff_ = {};
      ready_ = true;
    }
  }
  if (restored_) {
    gather();
    if (const auto status = commit(); !status)
      log_.warn("last_commit_failed", {{"error", status.error().message}});
  }
  ready_ = false;
  source_->close(5s);
}

void RouterRole::assigned(std::span<const core::Position> committed) {
  for (const auto& position : committed) waiting_.push_back(position.where);
  if (!restored_) ready_ = false;
  if (committed.empty())
    waiting_.push_back({});  // an empty journal: nothing to resume, but assigned
}

void RouterRole::restore_if_assigned() {
  if (waiting_.empty()) return;
  if (!restored_) {
    std::map<std::string, std::optional<std::string>> newest;
    const auto read =
        source_->read_all(kStateTopic, kStatePartition, [&](const core::RecordView& record) {
          auto& value = newest[std::string(record.key.value_or(""))];
          value = record.tombstone ? std::nullopt : std::optional<std::string>(record.text());
        });
    if (!read) {
      log_.warn("restore_failed", {{"error", read.error().message}});
      std::this_thread::sleep_for(100ms);
      return;
    }
    for (const auto& [key, value] : newest) {
      if (!value) continue;
      if (const auto status = router_->restore(key, *value); !status) {
        log_.error("state_record_refused", {{"key", key}, {"error", status.error().message}});
      }
    }
    router_->restored(now());
    restored_ = true;
    restore_metrics();
  }
  std::erase_if(waiting_,
                [](const core::StreamPartition& partition) { return partition.stream.empty(); });
  if (const auto status = source_->resume(waiting_); !status) {
    log_.warn("resume_failed", {{"error", status.error().message}});
    return;
  }
  waiting_.clear();
}

// State series live in memory: after a restart the issues that still fire are shown again.
void RouterRole::restore_metrics() {
  const auto published = [&](const std::string& id) {
    return std::any_of(options_.integrations.begin(), options_.integrations.end(),
                       [&](const auto& integration) {
                         return integration.id == id && integration.type == "publish_metric";
                       });
  };
  router_->for_each_issue([&](const routing::IssueView& view) {
    if (!view.firing) return;
    for (const auto& leaf : router_->explain(view.issue.labels).leaves) {
      if (std::any_of(leaf.integrations.begin(), leaf.integrations.end(), published)) {
        issue_metrics_.apply({view.issue_key, view.episodes, view.issue});
        return;
      }
    }
  });
}

void RouterRole::handle(const core::RecordView& record) {
  moved_ = true;
  if (record.topic == "router-deliveries") {
    if (const auto delivery = ingest::decode_delivery(record))
      router_->on_delivery(*delivery, now());
    return;
  }
  handle_event(record);
}

void RouterRole::handle_event(const core::RecordView& record) {
  auto decoded = ingest::decode_event(record);
  if (!decoded) {
    probe_->rejected.add();
    pending_.push_back(ingest::dead_letter(record, "bad_event", decoded.error().message, "router"));
    return;
  }
  const core::WallTime arrival = now();
  if (auto* issue = std::get_if<core::Issue>(&decoded->event)) {
    if (!decoded->has_starts_at) issue->starts_at = decoded->envelope.time.value_or(arrival);
    router_->on_issue(*issue, arrival);
  } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
    router_->on_job(*job, arrival);
  }
  // What is due at once is decided now: a resolve further on in the same poll must not hide a
  // firing that a route without group_wait tells immediately.
  if (restored_) router_->tick(arrival);
}

void RouterRole::gather() {
  routing::Output output = router_->take();
  probe_->update(router_->stats());
  for (const auto& decision : output.decisions)
    probe_->decided(decision.integration, decision.reason);
  for (const auto delay : output.flush_delays) {
    probe_->flush_late.observe(std::chrono::duration<double>(delay).count());
  }
  for (const auto& transition : output.transitions) {
    probe_->transition(transition.to, transition.resolution);
  }
  for (auto& notification : output.notifications) {
    const auto action = actions_.find(notification.integration);
    if (action != actions_.end()) {
      auto rendered = action->second->render(notification);
      if (rendered) {
        notification.rendered = std::move(*rendered);
      } else {
        log_.error("render_failed", {{"integration", notification.integration},
                                     {"error", rendered.error().message}});
      }
    }
    pending_.push_back(ingest::encode_notification(notification));
    unreported_.push_back(std::move(notification));
  }
  for (auto& entry : output.state) {
    core::OutRecord record{kStateTopic, std::move(entry.key), std::move(entry.value)};
    record.partition = kStatePartition;
    pending_.push_back(std::move(record));
  }
}

core::Status RouterRole::commit() {
  const auto positions = source_->positions();
  if (pending_.empty() && !moved_) return core::ok();
  const auto status = publisher_->commit(pending_, positions);
  if (!status) return status;
  probe_->transactions.add();
  pending_.clear();
  moved_ = false;
  for (const auto& notification : unreported_) log_notification(log_, notification);
  unreported_.clear();
  return status;
}

void RouterRole::start_over(const core::Error& error) {
  log_.warn("router_restarted", {{"error", error.message}});
  source_->close(2s);
  publisher_.reset();
  source_.reset();
  router_.reset();
  pending_.clear();
  unreported_.clear();
  waiting_.clear();
  restored_ = false;
  ready_ = false;
  retry_at_ = backoff_ = {};
  while (true) {
    const auto status = open();
    if (status) return;
    log_.error("router_open_failed", {{"error", status.error().message}});
    std::this_thread::sleep_for(500ms);
  }
}

void RouterRole::revoked(std::span<const core::StreamPartition> partitions) {
  if (restored_) {
    gather();
    if (const auto status = commit(); !status) {
      log_.warn("revoke_commit_failed", {{"error", status.error().message}});
    }
  }
  lost(partitions);
}

// State belongs to whoever holds the partitions now; with what is left we start from the log again.
void RouterRole::lost(std::span<const core::StreamPartition> partitions) {
  pending_.clear();
  unreported_.clear();
  std::erase_if(waiting_, [&](const core::StreamPartition& waiting) {
    return std::find(partitions.begin(), partitions.end(), waiting) != partitions.end();
  });
  restored_ = false;
  ready_ = false;
  if (const auto status = make_router(); !status)
    log_.error("router_open_failed", {{"error", status.error().message}});
}

}  // namespace tocsin::app
