#include "routing/tables/groups.h"

#include <algorithm>
#include <utility>

namespace tocsin::routing {

using core::WallTime;

namespace {

/// In a group of more members a run is no longer looked for.
constexpr std::size_t kMaxSearched = 1000;

core::Labels overflow_labels() { return {{"overflow", "true"}}; }

/// What group_labels() of the route gives for these labels.
bool are_group_labels(const Route& route, const KeptLabels& labels, const core::Labels& group) {
  if (route.by_all) return labels.are(group);
  std::size_t present = 0;
  for (auto name = route.group_by.begin(); name != route.group_by.end(); ++name) {
    if (std::find(route.group_by.begin(), name, *name) != name) continue;
    const std::string_view value = labels.at(*name);
    if (group.get(*name) != value) return false;
    present += value.empty() ? 0 : 1;
  }
  return present == group.entries().size();
}

std::string shown_key(const std::string& route_id, const std::string& group_key) {
  return route_id + '\x1f' + group_key;
}

}  // namespace

Group* Groups::find(const std::string& route_id, const std::string& group_key) const {
  const auto hash = hash_of_key_.find(shown_key(route_id, group_key));
  return hash == hash_of_key_.end() ? nullptr : table_.find(hash->second);
}

// ---- membership

/// The leaves of its present labels.
void Groups::follow_tree(IssueState& state) const {
  if (state.leaves != nullptr) return;
  std::vector<const Route*> found;
  const KeptLabels& labels = state.issue.labels;
  tree_.match([&](std::string_view name) { return labels.at(name); }, found);
  state.leaves = &*leaves_.insert(std::move(found)).first;
}

void Groups::route(IssueState& state, WallTime now, bool new_episode) {
  if (state.issue.shadow) return;  // recorded, never told
  follow_tree(state);
  std::vector<Group*> wanted;
  for (const Route* leaf : *state.leaves) {
    Group& group = group_for(state, *leaf, leaf->group_labels(state.issue.labels), now);
    wanted.push_back(&group);
    const bool fresh = group.members.count(state.key) == 0;
    if (!group.active()) activate(group, state, now);
    if (fresh) join(group, state);
    if (Group::Member& member = group.members.at(state.key); member.strayed) {
      member.strayed = false;
      change(group);
    }
    if (!fresh && !new_episode) continue;
    const auto wait = haste(group, state);
    if (wait && turns_.hurry(group, *wait, now)) touch(group);
    if (first_of_its_run(group, state)) {
      const bool pulled = turns_.pull(group, now + std::min(leaf->group_wait, leaf->urgent_wait));
      if (pulled) touch(group);
    }
  }
  // Labels changed: groups it no longer belongs to are left, unless somebody was told there; those
  // hear of it until it resolves.
  const std::vector<Group*> joined = state.groups;
  for (Group* group : joined) {
    if (std::find(wanted.begin(), wanted.end(), group) != wanted.end()) continue;
    if (!told_in(*group->logs, state.key)) {
      leave(*group, state);
    } else if (Group::Member& member = group->members.at(state.key); !member.strayed) {
      member.strayed = true;
      change(*group);
    }
  }
}

bool Groups::at_home(IssueState& state) const {
  if (state.issue.shadow) return true;
  follow_tree(state);
  if (state.leaves->size() != state.groups.size()) return false;
  return std::all_of(state.leaves->begin(), state.leaves->end(), [&](const Route* leaf) {
    return std::any_of(state.groups.begin(), state.groups.end(), [&](const Group* group) {
      return group->route == leaf && group->active() &&
             (group->overflow || are_group_labels(*leaf, state.issue.labels, group->labels));
    });
  });
}

/// How soon the route wants to be told of this news, where that is not its grid. What is worse than
/// what it followed from would be told after group_wait in a group of its own: being gathered with its
/// causes must not delay it.
std::optional<core::Duration> Groups::haste(const Group& group, const IssueState& state) const {
  const Route& route = *group.route;
  if (route.immediate_on && route.immediate_on->matches(state.issue.labels)) {
    return route.urgent_wait;
  }
  const auto& causes = state.issue.caused_by;
  if (causes.empty() || group.overflow || route.beside) return std::nullopt;
  if (group.labels == route.group_labels(state.issue.labels)) return std::nullopt;
  const bool worse = std::all_of(causes.begin(), causes.end(), [&](const core::Cause& cause) {
    const IssueState* found = issues_.state_of(cause.issue_key);
    return found == nullptr || !found->firing || found->issue.severity < state.issue.severity;
  });
  return worse ? std::optional(route.group_wait) : std::nullopt;
}

/// In a group that has told of others: another run, or the next attempt of one, is news at once.
bool Groups::first_of_its_run(const Group& group, const IssueState& state) const {
  const KeptIssue::Run& run = state.issue.run;
  if (!group.running || run.uid.nil() || group.members.size() > kMaxSearched) return false;
  return std::none_of(group.members.begin(), group.members.end(), [&](const auto& member) {
    const IssueState& other = *member.second.state;
    return &other != &state && other.issue.run.uid == run.uid &&
           other.issue.run.attempt == run.attempt;
  });
}

void Groups::pull(const IssueState& state, WallTime at) {
  for (Group* group : state.groups) {
    // What a rule's actions do, they do at once; nobody waits to read of it.
    if (group->route->beside) continue;
    if (turns_.pull(*group, at)) touch(*group);
  }
}

void Groups::pull(Group& group, WallTime at) {
  if (turns_.pull(group, at)) touch(group);
}

bool Groups::route_resolved(IssueState& state, WallTime now) {
  follow_tree(state);
  bool wanted = false;
  for (const Route* leaf : *state.leaves) {
    const core::Labels labels = leaf->group_labels(state.issue.labels);
    const std::string hash = group_hash(*leaf, labels);
    const Group* found = table_.find(hash);
    if (found == nullptr || !told_in(*found->logs, state.key)) continue;
    Group& group = find_or_make(*leaf, labels, hash, false);
    wanted = true;
    if (!group.active()) activate(group, state, now);
    join(group, state);
    group.members.at(state.key).strayed = false;
    turns_.no_later_than(group, now);
    touch(group);
  }
  return wanted;
}

Group& Groups::find_or_make(const Route& route, const core::Labels& labels, const std::string& hash,
                            bool overflow) {
  Group& group = table_.make(hash);
  if (group.hash.empty()) {
    group.hash = hash;
    group.route_id = route.id;
    group.labels = labels;
    group.overflow = overflow;
    group.logs = &log_.of(hash);
  }
  if (!group.active()) {
    group.key = group_key(route, labels);
    group.grouping = route.grouping();
    group.route = &route;
    hash_of_key_[shown_key(route.id, group.key)] = group.hash;
  }
  return group;
}

Group& Groups::group_for(IssueState& state, const Route& route, const core::Labels& labels,
                         WallTime now) {
  for (Group* group : state.groups) {
    if (group->route == &route && (group->overflow || group->labels == labels)) return *group;
  }
  if (Group* group = group_of_cause(state, route)) return *group;
  const std::string hash = group_hash(route, labels);
  const Group* found = table_.find(hash);
  const bool active = found != nullptr && found->active();
  const bool room = active ? capacity_.another_member(*found) : capacity_.another_group(route.id);
  if (room) return find_or_make(route, labels, hash, false);
  capacity_.refused(route.id, now);
  return find_or_make(route, overflow_labels(), group_hash(route, overflow_labels()), true);
}

/// One cause is one group: what followed from an issue is told where that one is, as long as it
/// fires itself and whatever its own labels are.
Group* Groups::group_of_cause(const IssueState& state, const Route& route) const {
  const auto here = [&](const IssueState& issue) -> Group* {
    const auto found = std::find_if(
        issue.groups.begin(), issue.groups.end(),
        [&](const Group* one) { return one->route == &route && one->active() && !one->overflow; });
    return found == issue.groups.end() ? nullptr : *found;
  };
  if (state.issue.caused_by.empty() || route.beside) return nullptr;
  if (Group* joined = here(state)) return joined;
  for (const core::Cause& cause : state.issue.caused_by) {
    const IssueState* first = issues_.state_of(cause.issue_key);
    if (first == nullptr || first == &state || !first->firing) continue;
    Group* group = here(*first);
    if (group != nullptr && capacity_.another_member(*group)) return group;
  }
  return nullptr;
}

void Groups::activate(Group& group, const IssueState& first, WallTime now) {
  capacity_.opened(group);
  ++group.generation;
  group.created_at = now;
  agenda_.cancel(Due::forget_group, group.hash);
  turns_.begin(group, first, now);
  touch(group);
}

void Groups::join(Group& group, IssueState& state) {
  group.members[state.key] = {&state, false};
  state.groups.push_back(&group);
  issues_.touch(state);
  change(group);
}

void Groups::leave(Group& group, IssueState& state) {
  group.members.erase(state.key);
  state.groups.erase(std::remove(state.groups.begin(), state.groups.end(), &group),
                     state.groups.end());
  issues_.touch(state);
  change(group);
  if (!state.firing && state.groups.empty()) issues_.retire(state);
}

void Groups::change(Group& group) {
  const bool known = std::exchange(group.changed, true) && !group.unsaved;
  group.unsaved = false;
  if (!known) touch(group);
}

void Groups::change_all_of(const IssueState& state) {
  for (Group* group : state.groups) change(*group);
}

void Groups::tell_again(Group& group, const std::string& integration,
                        const std::vector<std::string>& issue_keys, WallTime now) {
  for (const std::string& key : issue_keys) {
    IssueState* found = issues_.state_of(key);
    if (found == nullptr || group.route == nullptr) {
      // Forgotten: nothing is left to tell of it.
      log_.change(group.hash, integration, [&](TellLog& log) { return log.told.erase(key) > 0; });
      continue;
    }
    if (!group.active()) {
      find_or_make(*group.route, group.labels, group.hash, group.overflow);
      activate(group, *found, now);
      turns_.no_later_than(group, now);
    }
    if (group.members.count(key) == 0) join(group, *found);
    issues_.keep(key);
  }
}

/// Do the issue's present labels lead to this group?
bool Groups::belongs(const Group& group, IssueState& state) const {
  follow_tree(state);
  return std::any_of(state.leaves->begin(), state.leaves->end(), [&](const Route* leaf) {
    return leaf == group.route && (group.overflow || !state.issue.caused_by.empty() ||
                                   are_group_labels(*leaf, state.issue.labels, group.labels));
  });
}

void Groups::release_held(WallTime now) {
  for (const auto& [hash, group] : table_.in_order()) {
    if (turns_.release(*group, now)) touch(*group);
  }
}

}  // namespace tocsin::routing
