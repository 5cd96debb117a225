// A silence as people ask for it (docs/silences.md).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace tocsin::routing {

/// For a time nobody is told of issues whose labels match. A record of `router-control`, key
/// `silence/<id>`; a null value takes it back.
struct Silence {
  std::string id;        // sil_…
  std::string matchers;  // as Matchers::parse reads them
  core::WallTime starts_at{};
  core::WallTime ends_at{};
  core::WallTime created_at{};
  std::string created_by;
  std::string comment;
  std::string actions;  // what it holds back: notify, stop_training; empty: both
};
/// Every issue that it matches is looked at with all of them; one more is refused.
inline constexpr std::size_t kMaxSilences = 1000;
/// How long one is kept after its end.
inline constexpr core::Duration kSilenceKept = std::chrono::hours(120);
[[nodiscard]] bool in_force(const Silence& silence, core::WallTime at) noexcept;
std::string silence_json(const Silence& silence);
/// invalid_argument: it is none, or check() says why it is not to be.
core::Result<Silence> read_silence(std::string_view json);
/// invalid_argument: matchers that do not parse, or that all hold where their label is missing, or an
/// end that is not after the begin.
core::Status check(const Silence& silence);

}  // namespace tocsin::routing
