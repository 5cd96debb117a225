// What people ask of one integration, as records of `router-control`, and how it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::actions {

/// disable: nothing is sent, and what comes waits. enable: takes that back, and what a far side that is
/// gone (410) has switched off. Both hold until the next such order. reset: no pause of the breaker or
/// of Retry-After is waited for. probe: the same, and what waits for its next attempt is tried now.
/// Those two are done once.
enum class EndpointDeed : std::uint8_t { disable, enable, reset, probe };
std::string_view to_string(EndpointDeed deed) noexcept;

struct EndpointOrder {
  std::string integration;
  EndpointDeed deed = EndpointDeed::enable;
  std::string by;       // "ada@node-7"
  std::string comment;  // why
  core::WallTime at{};

  /// It holds on: it is obeyed again after a restart.
  [[nodiscard]] bool lasts() const noexcept {
    return deed == EndpointDeed::disable || deed == EndpointDeed::enable;
  }
};

/// Is it a key of such a record: "endpoint/<integration>" or "breaker/<integration>"?
bool is_endpoint_key(std::string_view key) noexcept;
/// The record of `router-control`. An order that lasts and one that is done once have keys of their own, so
/// that neither takes the other's place.
core::OutRecord endpoint_record(const EndpointOrder& order);
/// invalid_argument: what is wrong with it. A tombstone (nullopt) is an order to enable.
core::Result<EndpointOrder> read_endpoint_order(std::string_view key,
                                                std::optional<std::string_view> value);

/// How an integration stands, for people.
struct EndpointStand {
  std::string integration;
  std::string breaker;                   // closed, half_open, open
  core::WallTime until{};                // of an open breaker: when it is probed at the latest
  core::WallTime paused{};               // the far side has asked to wait until then; may be over
  std::string held;                      // who switched it off by hand, and why; empty: nobody
  std::string switched_off;              // why nothing is sent any more (410); empty: it is
  std::size_t waiting = 0;               // notifications without a final state
  std::optional<core::WallTime> oldest;  // when the oldest of them was decided
};

}  // namespace tocsin::actions
