#include "rules/engine/state/remap.h"

#include <algorithm>
#include <map>

namespace tocsin::rules {
namespace {

constexpr std::uint32_t kGone = 0xFFFFFFFFU;

/// Elements go to their new places; the others are as `fresh` makes them.
template <typename T>
void move_to(std::vector<T>& items, const std::vector<std::uint32_t>& places, std::size_t size) {
  std::vector<T> out(size);
  for (std::size_t i = 0; i < items.size() && i < places.size(); ++i) {
    if (places[i] != kGone) out[places[i]] = std::move(items[i]);
  }
  items = std::move(out);
}

// Who reads issues takes a smaller number of a rule for an older report: one that was changed, or taken
// out and comes back, counts on behind all that rules of the run that are gone ever told. How far those
// came stays with a rule of the engine's own, whose issues are none of the run's.
void move_progress(std::vector<RuleProgress>& progress, const std::vector<std::uint32_t>& places,
                   std::size_t size) {
  std::uint64_t told = 0;
  std::vector<bool> kept(size, false);
  for (std::size_t i = 0; i < progress.size() && i < places.size(); ++i) {
    if (places[i] != kGone) {
      kept[places[i]] = true;
    } else if (progress[i].issue_sequence > 0) {
      told = std::max(told, progress[i].issue_sequence + 1);
    }
  }
  move_to(progress, places, size);
  RuleProgress& keeper = progress[size - operational_rules().size() +
                                  static_cast<std::size_t>(Operational::state_incomplete)];
  keeper.issue_sequence = told = std::max(told, keeper.issue_sequence);
  for (std::size_t i = 0; i < size; ++i) {
    if (!kept[i]) progress[i].issue_sequence = told;
  }
}

}  // namespace

std::vector<Remap::Known> Remap::parse(std::string_view layout) {
  std::vector<Known> rules;
  while (!layout.empty()) {
    const std::size_t end = std::min(layout.find('\n'), layout.size());
    const std::string_view line = layout.substr(0, end);
    layout.remove_prefix(std::min(end + 1, layout.size()));
    Known rule{std::string(line), {}, {}, {}, '-'};
    std::size_t from = 0;
    for (std::string* field : {&rule.name, &rule.type, &rule.hash}) {
      const std::size_t to = std::min(line.find('\x1f', from), line.size());
      *field = line.substr(from, to - from);
      from = std::min(to + 1, line.size());
    }
    if (from < line.size()) rule.shape = line[from];
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<std::uint32_t> Remap::numbers(const std::vector<Known>& after, char shape) const {
  std::vector<std::uint32_t> out;
  for (const Known& old : before_) {
    if (shape != 0 && old.shape != shape) continue;
    std::uint32_t number = 0;
    std::uint32_t found = kGone;
    for (const Known& rule : after) {
      if (shape != 0 && rule.shape != shape) continue;
      if (rule.text == old.text) found = number;
      ++number;
    }
    out.push_back(found);
  }
  return out;
}

Remap::Remap(const std::string& before, const RuleTable& after) : before_(parse(before)) {
  const std::vector<Known> known = parse(after.layout());
  all_ = numbers(known, 0);
  rows_ = numbers(known, 'r');
  rules_ = after.all.size();
  row_rules_ = after.rows.size();
}

std::optional<std::uint32_t> Remap::number(std::uint32_t before) const {
  if (before >= all_.size() || all_[before] == kGone) return std::nullopt;
  return all_[before];
}

std::optional<RuleSettings> Remap::gone(std::uint32_t before) const {
  if (before >= before_.size() || number(before)) return std::nullopt;
  RuleSettings out;
  out.name = before_[before].name;
  out.type = before_[before].type;
  out.params_hash = before_[before].hash;
  return out;
}

const std::string& Remap::line(std::uint32_t before) const { return before_[before].text; }

void Remap::apply(Run& run) const {
  for (Roster& roster : run.rosters) {
    move_to(roster.blocks, rows_, row_rules_);
    roster.wanted.clear();  // what rules look at is decided again
    for (Block& block : roster.blocks) block.applies.clear();
    roster.chosen.clear();
    roster.picks.clear();
    roster.chosen_slots = 0;
    roster.chosen_unsure = false;
  }
  const auto rekey = [&](auto& map, auto&& rule_of) {
    std::remove_reference_t<decltype(map)> out;
    for (auto& [key, value] : map) {
      auto moved = key;
      const auto place = number(rule_of(moved));
      if (!place) continue;
      rule_of(moved) = *place;
      out.emplace(moved, std::move(value));
    }
    map = std::move(out);
  };
  rekey(run.issues.open, [](OpenKey& key) -> std::uint32_t& { return key.rule; });
  rekey(run.issues.open_counts,
        [](std::array<std::uint32_t, 3>& key) -> std::uint32_t& { return key[0]; });
  rekey(run.issues.clocks,
        [](std::pair<std::uint32_t, std::uint32_t>& key) -> std::uint32_t& { return key.first; });
  rekey(run.issues.lives,
        [](std::pair<std::uint32_t, std::uint64_t>& key) -> std::uint32_t& { return key.first; });
  move_progress(run.issues.progress, all_, rules_);
  run.issues.signs.rebuild(run.issues.open);
}

}  // namespace tocsin::rules
