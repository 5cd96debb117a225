// The compiled routing tree: inheritance resolved, identities given, matching (docs/routing.md).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/function_ref.h"
#include "routing/tree/explanation.h"
#include "routing/tree/integration.h"
#include "routing/tree/matchers.h"
#include "routing/tree/route_config.h"

namespace tocsin::routing {

/// A node with everything it inherits.
struct Route {
  std::string id;
  std::string path;  // canonical matchers from the root
  Matchers matchers;
  bool proceed = false;
  bool beside = false;  // of a rule's actions: acts on the run that fires
  std::vector<std::string> receivers;
  std::vector<const Integration*> integrations;  // of the receivers, in order; owned by RouteTree
  std::vector<std::string> group_by;             // ignored when by_all
  bool by_all = false;
  core::Duration group_wait{};
  core::Duration group_interval{};
  std::vector<RepeatStep> repeat;
  std::optional<Matchers> immediate_on;
  core::Duration urgent_wait{};
  core::Duration urgent_min_gap{};
  std::vector<std::string> mute_times;  // names of time intervals
  std::vector<std::string> active_times;
  std::vector<EscalationStep> escalation;
  std::optional<FailureStep> on_failure;
  bool propagate_ack = false;
  std::optional<FlapConfig> flap;
  /// All who may be told, `integrations` first: by escalation, as a backup, or as the backup of one of
  /// these. Empty: nobody beyond `integrations`.
  std::vector<const Integration*> further;
  std::vector<std::size_t> children;       // indices in RouteTree
  std::vector<std::size_t> names;          // per term: index in RouteTree's label names
  std::set<std::string, std::less<>> own;  // keys that the node says itself

  /// May anybody be told beyond `integrations`?
  [[nodiscard]] bool climbs() const noexcept { return !further.empty(); }
  /// Interval between repeats when the oldest firing member has this age.
  [[nodiscard]] core::Duration repeat_every(core::Duration age) const noexcept;
  [[nodiscard]] core::Duration longest_repeat() const noexcept;
  [[nodiscard]] core::Duration shortest_repeat() const noexcept;
  /// What groups depend on besides the route's id: changes when `group_by` does.
  [[nodiscard]] std::string grouping() const;
  [[nodiscard]] core::Labels group_labels(const core::Labels& labels) const;
};

/// `<path>:{k="v", …}`.
std::string group_key(const Route& route, const core::Labels& group_labels);
/// Hex SHA-256 over the route's id and the labels.
std::string group_hash(const Route& route, const core::Labels& group_labels);

class RouteTree {
 public:
  static core::Result<RouteTree> build(const RouteConfig& root,
                                       const std::vector<RuleActions>& rule_actions,
                                       std::vector<Integration> integrations);

  /// The value of a label; empty where there is none.
  using ValueOf = core::FunctionRef<std::string_view(std::string_view name)>;
  /// Leaves that the labels reach: routes of rule actions first, then the tree in its order. `out`
  /// is cleared; the pointers live as long as the tree.
  void match(ValueOf value_of, std::vector<const Route*>& out) const;
  [[nodiscard]] Explanation explain(const core::Labels& labels) const;

  /// Does a node ask for issues with this label by name=value?
  [[nodiscard]] bool asks_for(std::string_view name, std::string_view value) const noexcept;
  /// Every node, a parent before its children; routes of rule actions first.
  [[nodiscard]] std::vector<RouteView> views() const;

  [[nodiscard]] const Route* find(std::string_view route_id) const noexcept;
  [[nodiscard]] const Integration* find_integration(std::string_view id) const noexcept;
  /// Of a receiver, in order; owned by the tree.
  [[nodiscard]] std::vector<const Integration*> integrations_of(const std::string& receiver) const;
  /// The integration's own filter; nullptr when it has none.
  [[nodiscard]] const Matchers* filter_of(const Integration& integration) const noexcept;

 private:
  class Builder;
  void view(std::size_t node, std::size_t depth, std::vector<RouteView>& out) const;
  struct Walk;
  bool visit(std::size_t node, Walk& walk) const;
  [[nodiscard]] bool matches(const Route& route, Walk& walk) const;

  std::vector<Route> routes_;
  std::vector<std::size_t> beside_;  // routes of rule actions
  std::size_t root_ = 0;
  std::vector<std::string> names_;  // distinct label names that matchers ask for
  std::map<std::string, std::size_t, std::less<>> index_of_id_;
  std::vector<std::unique_ptr<Integration>> integrations_;
  std::map<std::string, const Integration*, std::less<>> integration_of_id_;
  std::unordered_map<const Integration*, Matchers> filters_;  // of those that have one
};

}  // namespace tocsin::routing
