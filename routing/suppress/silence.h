// A silence as people ask for it (docs/silences.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/labels.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/times/calendar.h"
#include "routing/times/time_interval.h"
#include "routing/tree/matchers.h"

namespace tocsin::routing {

/// Within its begin and end a silence holds only while one of these windows does.
struct Recurrence {
  std::string
      time_interval;  // of the configuration that `windows` were copied from; empty: of none
  std::vector<TimeWindow> windows;
  friend bool operator==(const Recurrence&, const Recurrence&) = default;
};

/// For a time nobody is told of issues whose labels match. A record of `router-control`, key
/// `silence/<id>`; a null value takes it back.
struct Silence {
  std::string id;                         // sil_…
  std::string matchers;                   // as Matchers::parse reads them; empty: `matcher_sets`
  std::vector<std::string> matcher_sets;  // several such texts, of which one must hold
  core::WallTime starts_at{};
  core::WallTime ends_at{};
  core::WallTime created_at{};
  std::string created_by;
  std::string comment;
  std::string actions;  // what it holds back: notify, stop_training; empty: both
  std::map<std::string, std::string> annotations;
  std::optional<Recurrence> recurrence;
  bool until_resolved = false;             // ends once all it matched is over for `quiet_for`
  core::Duration quiet_for{};              //
  core::Duration auto_expire_unmatched{};  // ends once nothing matched for so long; 0s: never
  std::string announce_on_unmute;          // reminder: what was told and still fires is told again
  std::string replaces;                    // id of the silence that it took the place of
  std::string ended_by;         // resolved, unmatched: the router ended it; empty: people or time
  std::uint64_t version = 0;    // counts changes; 0: of a writer that does not count
  core::WallTime updated_at{};  // of this version
  friend bool operator==(const Silence&, const Silence&) = default;
};
/// Every issue that it matches is looked at with all of them; one more is refused.
inline constexpr std::size_t kMaxSilences = 1000;
/// Bytes of a silence as JSON.
inline constexpr std::size_t kMaxSilenceBytes = std::size_t{16} << 10;
/// How long one is kept after its end.
inline constexpr core::Duration kSilenceKept = std::chrono::hours(120);
/// Longer than this only people who insist silence.
inline constexpr core::Duration kMaxSilenceDuration = std::chrono::hours(24 * 90);

/// The texts of its sets, one at least.
std::vector<std::string> matcher_sets(const Silence& silence);
/// Its sets in words: `{job="a"}`, or `{job="a"} or {rule="nan"}`.
std::string matchers_text(const Silence& silence);
std::string silence_json(const Silence& silence);
/// invalid_argument: it is none, or check() says why it is not to be.
core::Result<Silence> read_silence(std::string_view json);
/// Begun, not over, and its recurrence holds.
[[nodiscard]] bool in_force(const Silence& silence, core::WallTime at);

/// What a silence compares, compiled: which issues, and when.
class SilenceScope {
 public:
  /// invalid_argument: matchers or windows that do not parse.
  static core::Result<SilenceScope> of(const Silence& silence);

  [[nodiscard]] const std::vector<Matchers>& sets() const noexcept { return sets_; }
  [[nodiscard]] bool matches(const core::Labels& labels) const;
  [[nodiscard]] bool in_force(core::WallTime at) const;
  /// The first instant after `since`, not after `until`, from which it is in force and was not, or
  /// the other way round.
  [[nodiscard]] std::optional<core::WallTime> next_change(core::WallTime since,
                                                          core::WallTime until) const;

 private:
  std::vector<Matchers> sets_;
  std::optional<Calendar> recurrence_;
  core::WallTime starts_at_{};
  core::WallTime ends_at_{};
};

}  // namespace tocsin::routing
