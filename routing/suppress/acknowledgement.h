// An acknowledgement as people and their tools write it (docs/acknowledge.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace tocsin::routing {

/// Somebody has taken on what it names: no repeats and no escalation while these episodes fire. A
/// record of `router-control`, key `ack/<id>`; a null value takes it back.
struct Acknowledgement {
  std::string id;                   // ack_…
  std::vector<std::string> issues;  // issue keys
  std::string group;                // hash of a group, or the key of one incident of it
  std::string run;                  // uid: all of its issues
  std::string by;
  std::string note;
  core::WallTime at{};
  std::optional<core::WallTime> until;
  std::string origin;  // cli, api, or the integration that it came from
};
/// Of issues named in one record; one more is refused.
inline constexpr std::size_t kMaxAckIssues = 1000;

std::string ack_json(const Acknowledgement& ack);
/// invalid_argument: it is none, names nothing, nobody, or ends before it begins.
core::Result<Acknowledgement> read_ack(std::string_view json);

}  // namespace tocsin::routing
