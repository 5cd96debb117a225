// Which notification is carried out next, and when again: one lane per integration
// (docs/actions/README.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actions/contract/common_config.h"
#include "actions/contract/descriptor.h"
#include "actions/contract/endpoint_order.h"
#include "actions/contract/receivers.h"
#include "actions/delivery/caller.h"
#include "core/action.h"
#include "core/notification.h"
#include "core/record.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::actions {

struct LaneOptions {
  std::string integration;
  CommonConfig common;
  Traits traits;
  std::shared_ptr<const ActionConfig> config = nullptr;  // says what is told of what is abandoned
  std::string cluster = "default";
  std::string type = {};  // of the action; a label of its metrics
};

/// One lane per integration of the configuration.
std::vector<LaneOptions> lane_options(const ReceiversConfig& receivers,
                                      const std::string& cluster = "default");

/// Pure scheduler: no thread, no clock, no I/O. Lives on one strand; the attempts it hands out run
/// elsewhere and come back by finished().
///
/// `now` is a steady wall time: anchored to UTC once at start and then moved by the monotonic
/// clock, so that a jump of the wall clock neither stalls a retry nor lets loose a storm.
///
/// Order of calls: restore() for every record read back from `router-deliveries`, then enqueue()
/// for the records of `router-outbox`, then in turn next() until it has nothing, finished() as
/// answers come, take() to write what happened. Every notification enqueued gets exactly one final
/// Delivery, also across restarts.
///
/// Heads are indexed by due time and rank, lanes by when they can go on: a call costs the logarithm
/// of what waits. An integration has its own share of calls (`concurrency`), so that one that hangs
/// delays no other.
class DeliveryLanes {
 public:
  /// Uniform in [0, 1): the jitter's source.
  using Random = std::function<double()>;

  DeliveryLanes(std::vector<LaneOptions> lanes, Random random, core::Telemetry& telemetry);
  ~DeliveryLanes();
  DeliveryLanes(const DeliveryLanes&) = delete;
  DeliveryLanes& operator=(const DeliveryLanes&) = delete;

  /// A record of `router-deliveries` from before the restart, oldest first: final states are not
  /// delivered again, the number and the earliest time of the next attempt are kept, far-side
  /// handles of open incidents are remembered.
  void restore(const core::Delivery& delivery);

  /// Takes a decided notification; `from` is where its record stands in the outbox. A notification
  /// that was finished before (restored), or is known already, is passed over. One for an
  /// integration that no longer exists ends `cancelled`.
  ///
  /// `replay`: the request of a person that sends a finished notification again, under its own id; each
  /// replay is delivered once. One whose incident has newer messages waiting ends `superseded`.
  void enqueue(core::Notification notification, core::WallTime now,
               std::optional<core::Position> from = std::nullopt, std::string replay = {});

  /// What a person asks of an integration. False: the configuration has none of this id. What was
  /// switched off by hand keeps its messages: they wait, until they are too old.
  bool order(const EndpointOrder& order, core::WallTime now);
  /// How each integration stands, in the order of the configuration.
  [[nodiscard]] std::vector<EndpointStand> stands() const;

  /// An attempt that may start now, the most urgent of its lane; nullopt: nothing until
  /// next_deadline().
  std::optional<Attempt> next(core::WallTime now);

  /// When next() may have something that no finished() announces; nullopt: never by itself.
  [[nodiscard]] std::optional<core::WallTime> next_deadline(core::WallTime now) const;

  /// What an attempt came to. Each attempt exactly once: finished() or not_started().
  void finished(const Attempt& attempt, const core::AttemptOutcome& outcome, core::WallTime now);
  /// The attempt was handed out and never carried out (no longer the leader): it has not been.
  void not_started(const Attempt& attempt, core::WallTime now);

  /// A notification that ended dead or expired.
  struct DeadLetter {
    std::shared_ptr<const core::Notification> notification;  // as it came from the outbox
    core::Delivery end;
  };
  /// What happened since the last take(), to be committed as one unit: the delivery records, what
  /// people must be told of them (topic `issues`), and where the outbox reader stands when they are
  /// durable (lowest unfinished record).
  struct Batch {
    std::vector<core::Delivery> deliveries;
    std::vector<core::Issue> issues;
    std::vector<core::OutRecord> records;  // that attempts publish
    std::vector<core::Position> positions;
    std::vector<DeadLetter>
        dead;  // what was given up: with the record of its end among `deliveries`
    [[nodiscard]] bool empty() const noexcept {
      return deliveries.empty() && issues.empty() && records.empty() && positions.empty();
    }
  };
  Batch take();

  /// Brings the gauges that move by themselves (age of the oldest) up to date; every second or so.
  void measure(core::WallTime now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tocsin::actions
