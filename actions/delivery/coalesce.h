// Merging of messages that wait. Internal to actions.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "actions/delivery/item.h"

namespace tocsin::actions {

/// What the merging of waiting messages settled: `item` has the final state superseded.
struct Superseded {
  Item item;
  std::string successor;  // notification id; empty: never announced
};
/// Merges the messages of one group that wait, oldest first.
std::vector<Superseded> coalesce(std::deque<Item>& queue);
/// The same for Traits::every_issue: a message goes where those behind it tell of all its issues.
std::vector<Superseded> coalesce_by_issue(std::deque<Item>& queue);

}  // namespace tocsin::actions
