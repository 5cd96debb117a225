// One record of rules-state as bytes: version, fingerprint of the layout, generation and checksum
// in front of a piece of at most 800 KB. What is none of ours is an error with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"
#include "rules/engine/memory/run.h"

namespace tocsin::rules {

inline constexpr std::size_t kChunkBytes = 800 * 1024;  // below Kafka's limit for one record
inline constexpr std::string_view kIndexKey = "index";

/// The parts of a run that are written on their own.
enum class PartKind : char {
  head = 'h',
  workers = 'w',
  names = 'n',
  rosters = 'l',
  slots = 's',
  evaluator = 'e',
};
struct PartId {
  PartKind kind = PartKind::head;
  std::uint32_t roster = 0;  // of slots; of an evaluator the upper half of its identity
  std::uint32_t range = 0;   // of workers, names, rosters or slots; of an evaluator the lower half
};
constexpr PartId evaluator_part(std::uint64_t identity) noexcept {
  return {PartKind::evaluator, static_cast<std::uint32_t>(identity >> 32),
          static_cast<std::uint32_t>(identity)};
}

/// "run/<uid>/<shard>/<life>/<kind><roster>.<range>": what both sets of keys of a part begin with.
std::string part_key(const RunId& id, std::uint32_t life, const PartId& part);
/// The key of one chunk. `slot`: a part is never written over its newest valid records.
std::string chunk_key(std::string_view part, std::uint8_t slot, std::uint32_t chunk);
/// Zero-padded: records are restored in any order, entries are applied in theirs.
std::string log_key(std::uint64_t number);

/// The error of what cannot be read as a state.
inline core::Error damaged(std::string message) {
  return {core::Code::data_loss, std::move(message)};
}

/// What stands in front of every record's bytes.
struct RecordHead {
  std::uint32_t version = 0;
  std::uint64_t layout = 0;      // state_layout() of the writer
  std::uint64_t generation = 0;  // the cut it belongs to
  std::uint64_t checksum = 0;
  std::uint32_t chunk = 0;
  std::uint32_t chunks = 1;
};

/// Fingerprint of everything that is written here, computed from the structures themselves.
std::uint64_t state_layout();

/// `bytes` with its head.
std::string seal(std::string_view bytes, std::uint64_t generation, std::uint32_t chunk = 0,
                 std::uint32_t chunks = 1);
/// Takes the head off. data_loss: too short, of another version or layout, or changed bytes.
core::Result<RecordHead> unseal(std::string_view& record);

}  // namespace tocsin::rules
