// Which messages of a connection have no answer yet, and what it means that it was lost. Pure: times
// are arguments; internal to actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "actions/transport/mqtt_packet.h"
#include "core/time.h"

namespace tocsin::actions {

/// The library repeats, after a reconnect, what was not answered. But a broker may close the
/// connection on one message, and would be given it again for ever. So a message that outlasts two
/// connections has all of them taken back from the library, and they go one by one, until the broker
/// has shown on which one it closes. `now` is steady time. One owner, or a lock.
class MqttFlights {
 public:
  /// A message's; message ids begin again with the library's queue.
  using Ticket = std::uint64_t;

  struct Flight {
    std::size_t bytes = 0;
    std::optional<int> reason;  // of its acknowledgement
    bool lost = false;          // taken back from the library: it may be sent again
    bool refused = false;       // the broker has closed the connection on it too often
    std::uint32_t losses = 0;   // connections that ended before its answer
  };

  struct Loss {
    bool quick = false;      // the next connection need not wait
    bool take_back = false;  // the library's queue must go; then taken_back()
  };

  PacketLimit& limit() { return limit_; }

  /// May one more message be on its way?
  [[nodiscard]] bool room(core::Duration now) const;
  /// A place for a message that will be entered, or was not taken by the library after all.
  void reserve() { ++busy_; }
  void release() { --busy_; }
  /// The library has the message, under this id; its answer may be here already.
  Ticket enter(int id, std::size_t bytes);
  /// A message of the client itself: its answer says nothing.
  void enter_own(int id) { own_.insert(id); }
  void answer(int id, int reason);

  /// Has it an answer, or was it taken back?
  [[nodiscard]] bool settled(Ticket ticket) const;
  /// The message's end; it is forgotten.
  Flight take(Ticket ticket);
  /// Nobody waits for it any more.
  void abandon(Ticket ticket);
  /// So many have no answer that the library sends no more.
  [[nodiscard]] bool stuck() const;
  /// Is anything with the library?
  [[nodiscard]] bool empty() const { return tickets_.empty(); }

  void connected() { connected_ = true; }
  Loss connection_lost(core::Duration now);
  void taken_back();

 private:
  void settle(Flight& flight, int reason);

  PacketLimit limit_;
  bool connected_ = false;                       // the broker has taken this connection
  bool progress_ = false;                        // something was acknowledged over it
  std::optional<core::Duration> careful_until_;  // until then one message at a time
  std::size_t busy_ = 0;  // messages without an answer that somebody waits for
  Ticket last_ticket_ = 0;
  std::map<Ticket, Flight> flights_;  // of messages that somebody waits for
  std::map<int, Ticket> tickets_;     // by message id: what is with the library
  std::map<int, int> early_;          // answers whose message is not entered yet
  std::size_t abandoned_ = 0;         // of tickets_: nobody waits for them any more
  std::set<int> own_;
};

}  // namespace tocsin::actions
