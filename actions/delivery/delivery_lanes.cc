// DeliveryLanes: its parts joined.
#include "actions/delivery/delivery_lanes.h"

#include <algorithm>
#include <utility>

#include "actions/delivery/admission.h"
#include "actions/delivery/attempts.h"
#include "actions/delivery/backlog.h"
#include "actions/delivery/before_restart.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/delivery_record.h"
#include "actions/delivery/endings.h"
#include "actions/delivery/intake.h"
#include "actions/delivery/known_notifications.h"
#include "actions/delivery/lane.h"
#include "actions/delivery/lane_agenda.h"
#include "actions/delivery/lane_orders.h"
#include "actions/delivery/lane_restart.h"
#include "actions/delivery/lane_table.h"
#include "actions/delivery/own_deliveries.h"
#include "actions/delivery/settlement.h"
#include "actions/delivery/tickets.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::Duration;
using core::WallTime;

std::vector<LaneOptions> lane_options(const ReceiversConfig& receivers,
                                      const std::string& cluster) {
  std::vector<LaneOptions> out;
  for (const auto& integration : receivers.integrations) {
    out.push_back({integration.common.id, integration.common, integration.traits,
                   integration.config, cluster, integration.type});
  }
  return out;
}

/// A notification comes in by intake and waits in its lane; the agenda says which lane may start an
/// attempt; settlement says what the answer comes to; the log has what is to be committed.
struct DeliveryLanes::State {
  State(std::vector<LaneOptions> options, Random source, core::Telemetry& telemetry)
      : random(std::move(source)),
        lanes(std::move(options), telemetry),
        agenda(lanes.all().size()),
        endings(known, log),
        backlog(agenda, endings),
        admission(tickets, before, known, log),
        own_deliveries(random, known, admission, backlog, log),
        intake(before, known, admission, endings, backlog, own_deliveries, log),
        settlement(random, backlog, endings, own_deliveries, log),
        attempts(tickets, agenda, backlog, settlement, log) {}

  Random random;
  LaneTable lanes;
  LaneAgenda agenda;
  Tickets tickets;
  KnownNotifications known;
  BeforeRestart before;
  DeliveryLog log;
  Endings endings;
  Backlog backlog;
  Admission admission;
  OwnDeliveries own_deliveries;
  Intake intake;
  Settlement settlement;
  Attempts attempts;
};

DeliveryLanes::DeliveryLanes(std::vector<LaneOptions> lanes, Random random,
                             core::Telemetry& telemetry)
    : state_(std::make_unique<State>(std::move(lanes), std::move(random), telemetry)) {}

DeliveryLanes::~DeliveryLanes() = default;

void DeliveryLanes::restore(const Delivery& delivery) {
  Lane* const lane = state_->lanes.find(delivery.integration);
  if (lane != nullptr) restore_attempt(*lane, delivery);
  if (delivery.state == DeliveryState::pending) {
    const Retry& retry = state_->before.attempted(delivery);
    if (lane != nullptr) restore_wait(*lane, delivery, retry);
  } else {
    state_->known.finish(known_as(delivery));
    const bool maybe_announced = state_->before.finished(delivery);
    if (lane != nullptr) restore_end(*lane, delivery, maybe_announced);
  }
}

void DeliveryLanes::enqueue(core::Notification notification, WallTime now,
                            std::optional<core::Position> from, std::string replay) {
  Lane* const lane = state_->lanes.find(notification.integration);
  state_->intake.take(lane, std::move(notification), {from, std::move(replay)}, now);
}

bool DeliveryLanes::order(const EndpointOrder& order, WallTime now) {
  Lane* const lane = state_->lanes.find(order.integration);
  if (lane == nullptr) return false;
  obey(*lane, order, now);
  state_->agenda.changed(lane->number);
  return true;
}

std::vector<EndpointStand> DeliveryLanes::stands() const {
  std::vector<EndpointStand> out;
  for (const Lane* lane : state_->lanes.all()) out.push_back(stand_of(*lane));
  return out;
}

std::optional<Attempt> DeliveryLanes::next(WallTime now) {
  LaneAgenda& agenda = state_->agenda;
  agenda.ripen(now);
  while (const auto number = agenda.first()) {
    Lane& lane = state_->lanes.at(*number);
    if (auto attempt = state_->attempts.start(lane, now)) return attempt;
    agenda.rests(*number, lane.choice.wake(now));
  }
  return std::nullopt;
}

std::optional<WallTime> DeliveryLanes::next_deadline(WallTime now) const {
  std::optional<WallTime> out;
  const auto offer = [&](WallTime at) { out = out ? std::min(*out, at) : at; };
  if (const auto at = state_->agenda.next()) offer(std::max(now, *at));
  for (const std::size_t number : state_->agenda.changed()) {
    if (const auto at = state_->lanes.at(number).choice.wake(now)) offer(*at);
  }
  return out;
}

void DeliveryLanes::finished(const Attempt& attempt, const core::AttemptOutcome& outcome,
                             WallTime now) {
  Lane* const lane = state_->lanes.find(attempt.integration);
  if (lane != nullptr) state_->attempts.finished(*lane, attempt, outcome, now);
}

void DeliveryLanes::not_started(const Attempt& attempt, WallTime now) {
  Lane* const lane = state_->lanes.find(attempt.integration);
  if (lane != nullptr) state_->attempts.not_started(*lane, attempt, now);
}

namespace {

// A message that waits and speaks of more than of such trouble; null: none does.
std::shared_ptr<const core::Notification> witness(const Lane& lane) {
  for (const auto& [key, group] : lane.queue.groups()) {
    auto whole = unpacked(group.front().notification);
    if (!speaks_of_trouble_only(*whole)) return whole;
  }
  return nullptr;
}

}  // namespace

void DeliveryLanes::measure(WallTime now) {
  for (Lane* lane : state_->lanes.all()) {
    const auto oldest = lane->queue.oldest();
    lane->probe.oldest(oldest ? now - *oldest : Duration{});
    if (lane->queue.waiting() == 0) lane->stand.moved();
    if (!lane->stand.failing()) {
      state_->log.tell(lane->trouble.moves(now));
      continue;
    }
    const auto since = lane->stand.stands(now);
    if (!since || !lane->trouble.may_say_standing(now)) continue;
    const auto waits = witness(*lane);
    if (waits == nullptr) continue;
    Delivery record = record_of(*waits);
    record.detail = lane->stand.why();
    state_->log.tell(lane->trouble.standing(record, *since, lane->queue.waiting(), now));
  }
}

DeliveryLanes::Batch DeliveryLanes::take() { return state_->log.take(); }

}  // namespace tocsin::actions
