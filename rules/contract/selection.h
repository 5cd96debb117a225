// Which tensors, scalars, modes, steps and workers a rule looks at (docs/rules/README.md).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/codes.h"
#include "core/dictionary.h"

namespace tocsin::rules {

/// later − earlier, held at the ends of the range instead of wrapping: both come from the wire.
constexpr std::int64_t distance(std::int64_t later, std::int64_t earlier) noexcept {
  std::int64_t out = 0;
  if (!__builtin_sub_overflow(later, earlier, &out)) return out;
  return later < earlier ? std::numeric_limits<std::int64_t>::min()
                         : std::numeric_limits<std::int64_t>::max();
}

/// time + by, held at the end of the range. `by` is not negative.
constexpr std::int64_t add(std::int64_t time, core::Duration by) noexcept {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return time > kMost - by.count() ? kMost : time + by.count();
}

/// What a dictionary entry says about a name.
struct Name {
  std::string text;
  std::vector<std::string> collections;
  std::vector<std::int64_t> shape;
  core::Dtype dtype = core::Dtype::unknown;
  core::Role role = core::Role::other;
  std::optional<core::Direction> direction = {};  // attrs.direction
  std::string op_type = {};                       // attrs.op_type: what made an activation
  std::optional<std::int64_t> axis = {};          // attrs.axis: along which its units lie
  friend bool operator==(const Name&, const Name&) = default;
};

constexpr std::uint32_t role_bit(core::Role role) noexcept {
  return 1U << (static_cast<std::uint32_t>(role) & 31U);
}
constexpr std::uint8_t mode_bit(core::Mode mode) noexcept {
  return static_cast<std::uint8_t>(1U << (static_cast<std::uint32_t>(mode) & 3U));
}
inline constexpr std::uint8_t kAllModes = 0x0F;
inline constexpr std::uint8_t kTrainModes =
    mode_bit(core::Mode::train) | mode_bit(core::Mode::global);

enum class Match : std::uint8_t { unknown, yes, no };

/// Union of roles, collections, patterns and operators, of tensors with enough dimensions.
/// Immutable.
class Selection {
 public:
  Selection();
  ~Selection();
  Selection(Selection&&) noexcept;
  Selection& operator=(Selection&&) noexcept;

  void add_all() { all_ = true; }
  void add_role(core::Role role) { roles_ |= role_bit(role); }
  void add_collection(std::string_view name);
  /// False with the reason in `error`: not a regular expression (RE2 syntax).
  bool add_regex(const std::string& pattern, std::string& error);
  /// Inputs or outputs of an operator (`tanh`, in any letter case). `role`: activation_in or
  /// activation_out; a tensor without a role is one when `input` or `output` is in its name.
  void add_operator(core::Role role, std::string_view op_type);
  /// No tensor whose name ends so, whatever else selects it.
  void without(std::string_view suffix) { without_ = suffix; }
  /// Only tensors of at least so many dimensions, whatever else selects them.
  void least_rank(std::size_t rank) { least_rank_ = rank; }
  [[nodiscard]] bool empty() const noexcept;

  /// `name` null: no dictionary entry yet; the answer is then `unknown` if it depends on one.
  [[nodiscard]] Match matches(core::Role role, const Name* name) const;

 private:
  struct Patterns;
  [[nodiscard]] Match selects(core::Role role, const Name* name) const;

  bool all_ = false;
  std::uint32_t roles_ = 0;
  std::size_t least_rank_ = 0;
  std::string without_;                                        // empty: nothing is left out
  std::vector<std::pair<core::Role, std::string>> operators_;  // in lower case
  std::vector<std::string> collections_;
  std::unique_ptr<Patterns> patterns_;
};

/// Parameters shared by the tensor rules. A rule states its own defaults before reading.
struct Common {
  std::vector<std::string> collection_names;
  std::vector<std::string> tensor_regex;
  std::vector<std::string> modes;    // as written; empty = the rule's own
  std::vector<std::string> workers;  // names; empty = all
  std::int64_t start_step = 0;
  std::optional<std::int64_t> end_step;
  std::uint32_t min_hits = 1;
  std::uint32_t clear_after = 3;
  core::Duration cooldown = std::chrono::seconds(300);
  std::optional<std::uint32_t> max_open_units;  // none = engine.max_open_units
  std::optional<std::string> severity;

  std::uint8_t mode_mask = kAllModes;

  [[nodiscard]] bool wants_step(std::int64_t step) const noexcept {
    return step >= start_step && (!end_step || step < *end_step);
  }
  [[nodiscard]] bool wants_mode(core::Mode mode) const noexcept {
    return (mode_mask & mode_bit(mode)) != 0;
  }
};

/// What a rule looks at when the user gives no selector.
struct Defaults {
  std::uint8_t modes = kAllModes;
  std::vector<core::Role> roles = {};
  std::vector<std::string> patterns = {};
  bool everything = false;
  bool needs_selector = false;  // refuses to start without one
  bool selects = true;          // false: no tensors at all (clock and system rules)
  bool has_start_step = true;   // false: the rule has a start_step of its own
  std::int64_t start_step = 0;
  std::uint32_t min_hits = 1;
};

/// Declares the shared parameters, checks them and fills `selection`.
void read_common(config::Reader& in, const Defaults& defaults, Common& common,
                 Selection& selection);

}  // namespace tocsin::rules
