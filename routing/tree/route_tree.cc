#include "routing/tree/route_tree.h"

#include <algorithm>
#include <utility>

#include "core/identity.h"

namespace tocsin::routing {

core::Duration Route::repeat_every(core::Duration age) const noexcept {
  for (const RepeatStep& step : repeat) {
    if (!step.until || age < *step.until) return step.every;
  }
  return repeat.back().every;
}

core::Duration Route::longest_repeat() const noexcept {
  core::Duration longest{};
  for (const RepeatStep& step : repeat) longest = std::max(longest, step.every);
  return longest;
}

core::Duration Route::shortest_repeat() const noexcept {
  core::Duration shortest = longest_repeat();
  for (const RepeatStep& step : repeat) shortest = std::min(shortest, step.every);
  return shortest;
}

std::string Route::grouping() const {
  if (by_all) return "...";
  std::vector<std::string> sorted = group_by;  // order carries no meaning
  std::sort(sorted.begin(), sorted.end());
  std::string out;
  for (const std::string& name : sorted) {
    out += name;
    out += '\x1f';
  }
  return out;
}

core::Labels Route::group_labels(const core::Labels& labels) const {
  if (by_all) return labels;
  core::Labels out;
  for (const std::string& name : group_by) out.set(name, labels.get(name));
  return out;
}

std::string group_key(const Route& route, const core::Labels& group_labels) {
  std::string out = route.path + ":{";
  for (const auto& [name, value] : group_labels.entries()) {
    if (out.back() != '{') out += ", ";
    out += to_text(Matchers::Term{name, MatchOperator::equal, value});
  }
  return out + '}';
}

std::string group_hash(const Route& route, const core::Labels& group_labels) {
  std::string bytes = route.id + '\xff';
  for (const auto& [name, value] : group_labels.entries()) {
    bytes += name;
    bytes += '\xff';
    bytes += value;
    bytes += '\xff';
  }
  return core::hex(core::sha256(bytes));
}

/// One pass over the tree. Label values are looked up once per name, not once per matcher.
struct RouteTree::Walk {
  std::vector<std::string_view> values;
  std::vector<const Route*>* leaves = nullptr;
  std::vector<NearMiss>* misses = nullptr;
};

bool RouteTree::matches(const Route& route, Walk& walk) const {
  for (std::size_t i = 0; i < route.names.size(); ++i) {
    const std::string_view value = walk.values[route.names[i]];
    if (route.matchers.holds(i, value)) continue;
    if (walk.misses != nullptr) {
      walk.misses->push_back(
          {route.id, route.path, to_text(route.matchers.terms()[i]), std::string(value)});
    }
    return false;
  }
  return true;
}

bool RouteTree::visit(std::size_t node, Walk& walk) const {
  const Route& route = routes_[node];
  if (!matches(route, walk)) return false;
  bool refined = false;
  for (const std::size_t child : route.children) {
    if (!visit(child, walk)) continue;
    refined = true;
    if (!routes_[child].proceed) break;
  }
  if (!refined && !route.integrations.empty()) walk.leaves->push_back(&route);
  return true;
}

void RouteTree::match(ValueOf value_of, std::vector<const Route*>& out) const {
  out.clear();
  Walk walk;
  walk.leaves = &out;
  walk.values.reserve(names_.size());
  for (const std::string& name : names_) walk.values.push_back(value_of(name));
  for (const std::size_t node : beside_) visit(node, walk);
  visit(root_, walk);
}

Explanation RouteTree::explain(const core::Labels& labels) const {
  Explanation out;
  std::vector<const Route*> leaves;
  Walk walk;
  walk.leaves = &leaves;
  walk.misses = &out.misses;
  for (const std::string& name : names_) walk.values.emplace_back(labels.get(name));
  for (const std::size_t node : beside_) visit(node, walk);
  visit(root_, walk);
  for (const Route* route : leaves) {
    MatchedRoute leaf{route->id,
                      route->path,
                      route->receivers,
                      {},
                      route->group_labels(labels),
                      {},
                      route->group_wait,
                      route->group_interval,
                      route->repeat.front().every};
    leaf.group_key = group_key(*route, leaf.group_labels);
    for (const Integration* integration : route->integrations) {
      leaf.integrations.push_back(integration->id);
    }
    out.leaves.push_back(std::move(leaf));
  }
  return out;
}

const Route* RouteTree::find(std::string_view route_id) const noexcept {
  const auto found = index_of_id_.find(route_id);
  return found == index_of_id_.end() ? nullptr : &routes_[found->second];
}

const Integration* RouteTree::find_integration(std::string_view id) const noexcept {
  const auto found = integration_of_id_.find(id);
  return found == integration_of_id_.end() ? nullptr : found->second;
}

std::vector<const Integration*> RouteTree::integrations_of(const std::string& receiver) const {
  std::vector<const Integration*> out;
  for (const auto& integration : integrations_) {
    if (integration->receiver == receiver) out.push_back(integration.get());
  }
  return out;
}

const Matchers* RouteTree::filter_of(const Integration& integration) const noexcept {
  const auto found = filters_.find(&integration);
  return found == filters_.end() ? nullptr : &found->second;
}

}  // namespace tocsin::routing
