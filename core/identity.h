// Who and where: runs, workers, hashes and deterministic ids (docs/wire.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tocsin::core {

/// UUID of a run, RFC 4122 byte order. The nil value means "no run" (a node that serves none).
struct RunUid {
  std::array<std::uint8_t, 16> bytes{};
  [[nodiscard]] bool nil() const noexcept { return bytes == std::array<std::uint8_t, 16>{}; }
  friend auto operator<=>(const RunUid&, const RunUid&) = default;
};

/// Lower-case 8-4-4-4-12 text.
std::string to_text(const RunUid& uid);
/// Accepts upper and lower case; nullopt for anything but a UUID.
std::optional<RunUid> parse_run_uid(std::string_view text) noexcept;
/// UUIDv5 under the product's own name space (NS = UUIDv5(DNS, "tocsin.dev")).
RunUid run_uid_v5(std::string_view name);
/// Uid of a user-chosen run name: the text itself if it is a UUID, else v5 of "run:<job>/<run>".
RunUid run_uid_for(std::string_view job, std::string_view run);
/// Random UUIDv4 from the system's entropy.
RunUid run_uid_v4();

inline constexpr std::uint32_t kNodeAgentRank = 0xFFFFFFFFU;

/// XXH64, seed 0, of UTF-8 bytes: what names are on the wire.
std::uint64_t name_hash(std::string_view name) noexcept;
/// Kafka's murmur2 of the key's bytes, as Java's default partitioner computes it.
std::uint32_t murmur2(std::string_view key) noexcept;
/// (murmur2(key) & 0x7fffffff) mod count.
std::int32_t partition_for(std::string_view key, std::int32_t count) noexcept;
/// Record key of telemetry: "<run uid>" for shard 0, "<run uid>/<shard>" else.
std::string route_key(const RunUid& uid, std::uint16_t shard = 0);
/// Record key of a node without a run: "node:<node id>".
std::string node_route_key(std::string_view node);

std::array<std::uint8_t, 32> sha256(std::string_view bytes);
std::string hex(std::span<const std::uint8_t> bytes);
/// RFC 4648 base32, lower case, no padding.
std::string base32(std::span<const std::uint8_t> bytes);

/// prefix + first 26 characters of base32(SHA-256(fields joined by 0x1F)).
std::string make_id(std::string_view prefix, std::initializer_list<std::string_view> fields);
/// First 16 hex digits of SHA-256 of the effective parameters as canonical JSON.
std::string params_hash(std::string_view canonical_json);
/// `cmd_` over (run uid, attempt, action): all stop requests of one attempt are one command.
std::string command_id(const RunUid& uid, std::uint32_t attempt, std::string_view action,
                       std::string_view version = {});

}  // namespace tocsin::core
