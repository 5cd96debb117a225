// What is captured and when: section `capture` (docs/hook.md), the save grid
// (docs/hook.md), and the collections that a tensor belongs to.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/hook/capture/phases_config.h"
#include "collectors/hook/capture/raw_config.h"
#include "collectors/hook/capture/save_grid.h"
#include "collectors/hook/capture/statistic_set.h"
#include "config/config.h"
#include "core/codes.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::hook {

/// One schedule per mode.
template <typename T>
using ByMode = std::array<T, 4>;

struct CollectionConfig {
  std::string name;
  SaveRule save;             // what is not given: as the section says
  ByMode<SaveRule> save_in;  // over `save`, in one mode
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::vector<std::string> roles;
  std::vector<std::string> modes;
  std::optional<std::vector<std::string>> statistics;  // requests; nullopt: the collection's own
  bool raw = false;                                    // elements, too
};
/// As it is read: a map of what is given.
core::Value to_value(const CollectionConfig& collection);

struct CaptureConfig {
  Every every;
  ByMode<std::optional<Every>> every_in;  // of one mode, when given apart; predict: as eval
  Every scalars{1, core::Duration{0}, 0};
  std::string workers = "auto";                    // auto | one | all
  std::string step_by = "first_optimizer";         // that, the name of a watched one, or manual
  std::vector<std::string> phases = all_phases();  // timed without being asked for
  double overhead = 0.01;
  std::uint64_t delta_memory = 512ULL << 20;
  bool dry_run = false;                       // measures and sends nothing
  bool ledger = true;                         // loss calls say what the task is (docs/ledger.md)
  RawConfig raw;                              // where elements go
  std::vector<CollectionConfig> collections;  // empty: the standard ones (core/collections.h)
  std::vector<std::string> warnings;          // what is read and not done

  /// Of a collection that gives none.
  [[nodiscard]] const Every& every_of(core::Mode mode) const;
};
void read(config::Reader& in, CaptureConfig& cfg);
/// Parses the section as text (YAML, and so JSON); warnings join those of `base`. Error:
/// invalid_argument with every problem.
core::Result<CaptureConfig> parse_capture(std::string_view text, CaptureConfig base = {});

/// Collections as bits, so that "is any of them due" is one and-operation. At most 64.
using CollectionMask = std::uint64_t;

/// A compiled section. Not thread-safe.
class CapturePlan {
 public:
  /// Error: invalid_argument (bad pattern, unknown role or mode, more than 64 collections).
  static core::Result<CapturePlan> compile(const CaptureConfig& config);
  CapturePlan(CapturePlan&&) noexcept;
  CapturePlan& operator=(CapturePlan&&) noexcept;
  ~CapturePlan();

  /// Collections that want a tensor of this name and role.
  [[nodiscard]] CollectionMask collections_of(std::string_view name, core::Role role) const;
  [[nodiscard]] std::vector<std::string> names(CollectionMask mask) const;
  /// Bit of a collection; adds an empty one on the section's grid when it is new (0: table full).
  CollectionMask bit(std::string_view name);
  /// Bits due at this mode step. `stretch`: the governor's factor on grids (`steps` are kept).
  /// `now`: monotonic, for grids in time; those advance when they are due.
  CollectionMask due(core::Mode mode, std::int64_t step, std::int64_t stretch, core::Duration now);
  /// Whether any bit may be due at this step, at some time: False where no grid in steps has it and
  /// there is no grid in time. Grids in time do not advance.
  [[nodiscard]] bool may_be_due(core::Mode mode, std::int64_t step, std::int64_t stretch) const;
  /// What these collections ask for beyond the base columns.
  [[nodiscard]] StatisticMask statistics_of(CollectionMask collections) const;
  /// Those of these collections whose elements are sent, too.
  [[nodiscard]] CollectionMask raw_of(CollectionMask collections) const;
  /// What the bits of statistics_of() stand for.
  [[nodiscard]] const StatisticRequests& requests() const;
  /// Smallest step grid of all collections in this mode, of those that commands ask for one without an end; the
  /// governor's measuring interval.
  [[nodiscard]] std::int64_t smallest_every() const;
  /// What a command asks for on top: a collection that is not captured (built-in ones only), a
  /// denser grid (never a wider one), statistics, elements. Returns what cannot be given, by name; `changed` is
  /// set when anything is new. Masks and names asked for before are then out of date.
  std::vector<std::string> extend(const CollectionConfig& wanted, bool& changed);
  /// Back to what compile() and define() gave.
  void restore();
  /// Collections as the script has them: further ones, or in the place of those of their names.
  /// Error: as of compile(), and nothing has changed. Bits stay, names belong to other collections.
  core::Status define(const std::vector<CollectionConfig>& collections);
  /// Every collection with all that is known of it, and its bit.
  [[nodiscard]] std::vector<std::pair<const CollectionConfig*, CollectionMask>> all() const;
  [[nodiscard]] std::string workers() const;
  [[nodiscard]] const CaptureConfig& config() const;
  /// As it stands in the `start` record.
  [[nodiscard]] core::Value describe() const;

 private:
  struct State;
  explicit CapturePlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tocsin::hook
