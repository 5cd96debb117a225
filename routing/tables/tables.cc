#include "routing/tables/tables.h"

#include <algorithm>
#include <array>
#include <string>

namespace tocsin::routing {

using core::Status;

/// A kind of record of the changelog.
struct Tables::Kind {
  std::string_view name;
  Status (*restore)(Tables& tables, std::string_view rest, std::string_view value);

  static const Kind* find(std::string_view name);
};

const Tables::Kind* Tables::Kind::find(std::string_view name) {
  using View = std::string_view;
  static constexpr std::array kKinds{
      Kind{"issue", [](Tables& t, View rest, View value) { return t.issues.restore(rest, value); }},
      Kind{"group", [](Tables& t, View rest, View value) { return t.groups.restore(rest, value); }},
      Kind{"log", [](Tables& t, View rest, View value) { return t.log.restore(rest, value); }},
      Kind{"run", [](Tables& t, View rest, View value) { return t.runs.restore(rest, value); }},
      Kind{"seen", [](Tables& t, View rest, View value) { return t.dedup.restore(rest, value); }},
      Kind{"ack", [](Tables& t, View rest, View value) { return t.acks.restore(rest, value); }},
      Kind{"flap", [](Tables& t, View rest, View value) { return t.flaps.restore(rest, value); }},
      Kind{"ladder",
           [](Tables& t, View rest, View value) { return t.ladders.restore(rest, value); }},
      Kind{"member",
           [](Tables& t, View rest, View /*value*/) { return t.old_members_.restore(rest); }},
  };
  const auto found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& one) { return one.name == name; });
  return found == kKinds.end() ? nullptr : &*found;
}

std::optional<Status> Tables::restore(std::string_view kind, std::string_view rest,
                                      std::string_view value) {
  const Kind* found = Kind::find(kind);
  if (found == nullptr) return std::nullopt;
  return found->restore(*this, rest, value);
}

void Tables::restore_gone(std::string_view kind, std::string_view rest) {
  if (kept_as_read(kind)) issues.restore_gone(rest);
}

void Tables::link() {
  dedup.restored();
  issues.restored();
  log.restored([this](const std::string& group) { return groups.find(group) != nullptr; });
  old_members_.link(issues);
  groups.link();
  runs.restored();
  acks.restored();
  ladders.restored([this](const std::string& group) { return groups.find(group) != nullptr; });
}

void Tables::take(std::vector<StateRecord>& out) {
  groups.take(out);
  issues.take(out);
  log.take(out);
  old_members_.take(out);
  runs.take(out);
  dedup.take(out);
  acks.take(out);
  ladders.take(out);
  flaps.take(out);
}

void Tables::snapshot(std::vector<StateRecord>& out) const {
  groups.snapshot(out);
  issues.snapshot(out);
  log.snapshot(out);
  runs.snapshot(out);
  dedup.snapshot(out);
  acks.snapshot(out);
  ladders.snapshot(out);
  flaps.snapshot(out);
}

void Tables::show(EachFigure each) const {
  capacity.show(each);
  log.show(each);
}

void Tables::count(Stats& stats) const {
  stats.groups_overflow = capacity.overflowed();
  stats.firing = issues.firing();
  stats.issues = issues.size();
  stats.inhibitors = firing.size();
  stats.groups = capacity.active();
  stats.runs = runs.size();
  stats.seen = dedup.size();
  stats.seen_evicted = dedup.evicted();
  stats.owed = log.owed();
  stats.undelivered = log.undelivered();
  stats.flapping = flaps.flapping();
  stats.acked = acks.acked();
  stats.oldest_undelivered = log.oldest_undelivered();
}

}  // namespace tocsin::routing
