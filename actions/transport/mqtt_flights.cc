#include "actions/transport/mqtt_flights.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tocsin::actions {
namespace {

constexpr std::size_t kWindow = 100;
// As many as the library has on their way at once.
constexpr std::size_t kMostAbandoned = 20;
// How long messages go one by one after the broker has closed connections on some.
constexpr core::Duration kCareful = std::chrono::seconds(60);

}  // namespace

bool MqttFlights::room(core::Duration now) const {
  const bool careful = careful_until_ && now < *careful_until_;
  return busy_ < (careful ? 1 : kWindow);
}

MqttFlights::Ticket MqttFlights::enter(int id, std::size_t bytes) {
  const Ticket ticket = ++last_ticket_;
  Flight& flight = flights_[ticket];
  flight.bytes = bytes;
  if (const auto early = early_.extract(id)) {
    settle(flight, early.mapped());
  } else {
    tickets_[id] = ticket;
  }
  return ticket;
}

void MqttFlights::settle(Flight& flight, int reason) {
  flight.reason = reason;
  --busy_;
  if (reason < 0x80) limit_.taken(flight.bytes);
}

void MqttFlights::answer(int id, int reason) {
  if (own_.erase(id) > 0) return;
  progress_ = true;
  const auto ticket = tickets_.extract(id);
  if (!ticket) {
    early_[id] = reason;
    return;
  }
  if (const auto flight = flights_.find(ticket.mapped()); flight != flights_.end()) {
    settle(flight->second, reason);
  } else if (abandoned_ > 0) {
    --abandoned_;
  }
}

bool MqttFlights::settled(Ticket ticket) const {
  const Flight& flight = flights_.at(ticket);
  return flight.reason || flight.lost;
}

MqttFlights::Flight MqttFlights::take(Ticket ticket) { return flights_.extract(ticket).mapped(); }

void MqttFlights::abandon(Ticket ticket) {
  flights_.erase(ticket);
  --busy_;
  ++abandoned_;
}

bool MqttFlights::stuck() const { return abandoned_ >= kMostAbandoned; }

MqttFlights::Loss MqttFlights::connection_lost(core::Duration now) {
  if (!std::exchange(connected_, false)) return {};
  Loss out;
  out.quick = std::exchange(progress_, false);
  std::vector<Flight*> waiting;
  for (const auto& [id, ticket] : tickets_) {
    if (const auto flight = flights_.find(ticket); flight != flights_.end()) {
      waiting.push_back(&flight->second);
    }
  }
  const bool careful = careful_until_ && now < *careful_until_;
  const bool alone = careful && waiting.size() == 1 && abandoned_ == 0;
  if (alone && limit_.closed_on(waiting.front()->bytes, now)) {
    waiting.front()->refused = true;
    out.quick = true;
  }
  bool again = false;
  for (Flight* flight : waiting) again = ++flight->losses > 1 || again;
  if (again || alone) careful_until_ = now + kCareful;
  out.take_back = again || alone || abandoned_ > 0;
  return out;
}

void MqttFlights::taken_back() {
  for (const auto& [id, ticket] : tickets_) {
    const auto flight = flights_.find(ticket);
    if (flight == flights_.end()) continue;
    flight->second.lost = true;
    --busy_;
  }
  tickets_.clear();
  early_.clear();
  own_.clear();
  abandoned_ = 0;
}

}  // namespace tocsin::actions
