#include "rules/state/remap.h"

#include <algorithm>
#include <map>

namespace tocsin::rules {
namespace {

/// A rule as an earlier engine knew it.
struct Known {
  std::string text;  // whole line: equal text, equal memory
  std::string name;
  std::string type;
  std::string hash;
  char shape = '-';
};

std::vector<Known> parse(std::string_view layout) {
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

constexpr std::uint32_t kGone = 0xFFFFFFFFU;

/// Old number → new number, among all rules or among those of one shape.
std::vector<std::uint32_t> numbers(const std::vector<Known>& before,
                                   const std::vector<Known>& after, char shape) {
  std::vector<std::uint32_t> out;
  for (const Known& old : before) {
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

/// Elements go to their new places; the others are as `fresh` makes them.
template <typename T>
void move_to(std::vector<T>& items, const std::vector<std::uint32_t>& places, std::size_t size) {
  std::vector<T> out(size);
  for (std::size_t i = 0; i < items.size() && i < places.size(); ++i) {
    if (places[i] != kGone) out[places[i]] = std::move(items[i]);
  }
  items = std::move(out);
}

}  // namespace

void remap(Context& ctx, IssueBook& book, PartitionState& partition, Run& run,
           const std::string& before_layout) {
  const std::vector<Known> before = parse(before_layout);
  const std::vector<Known> after = parse(ctx.rules.layout());
  const auto all = numbers(before, after, 0);
  const auto rows = numbers(before, after, 'r');
  for (Lane& lane : run.lanes) {
    move_to(lane.blocks, rows, ctx.rules.rows.size());
    lane.wanted.clear();  // what rules look at is decided again
    for (Block& block : lane.blocks) block.applies.clear();
  }
  const auto place = [&](std::uint32_t old) { return old < all.size() ? all[old] : kGone; };
  const auto rekey = [&](auto& map, auto&& rule_of) {
    std::remove_reference_t<decltype(map)> out;
    for (auto& [key, value] : map) {
      auto moved = key;
      const std::uint32_t number = place(rule_of(moved));
      if (number == kGone) continue;
      rule_of(moved) = number;
      out.emplace(moved, std::move(value));
    }
    map = std::move(out);
  };
  // Told with the names and parameters of the rules as they were.
  PartitionState* const before_part = std::exchange(ctx.part, &partition);
  for (const auto& [key, open] : run.issues.open) {
    if (place(key.rule) != kGone || key.rule >= before.size()) continue;
    const Known& old = before[key.rule];
    RuleSettings gone;
    gone.name = old.name;
    gone.type = old.type;
    gone.params_hash = old.hash;
    const std::uint64_t last =
        key.rule < run.issues.progress.size() ? run.issues.progress[key.rule].issue_sequence : 0;
    book.resolve_gone(partition, run, gone, open, last + 1);
  }
  ctx.part = before_part;
  rekey(run.issues.open, [](OpenKey& key) -> std::uint32_t& { return key.rule; });
  rekey(run.issues.open_counts,
        [](std::array<std::uint32_t, 3>& key) -> std::uint32_t& { return key[0]; });
  rekey(run.issues.clocks,
        [](std::pair<std::uint32_t, std::uint32_t>& key) -> std::uint32_t& { return key.first; });
  rekey(run.issues.lives,
        [](std::pair<std::uint32_t, std::uint64_t>& key) -> std::uint32_t& { return key.first; });
  move_to(run.issues.progress, all, ctx.rules.all.size());
  run.issues.signs.rebuild(run.issues.open);
}

}  // namespace tocsin::rules
