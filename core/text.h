// Small text helpers that several rooms need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tocsin::core {

/// The candidate with the least edit distance to `wanted`, if it is near enough (at most a third of
/// its length, at least 1) to be what was meant; else the only one that goes on where `wanted` (4
/// characters or more) ends; empty else.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace tocsin::core
