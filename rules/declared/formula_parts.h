// What the compiler adds to a formula, and what a formula's window allows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rules/declared/compile.h"

namespace tocsin::rules::declared {

/// The aggregate's number; the same one twice is kept once.
std::uint16_t add_aggregate(Formula& formula, Kind kind, std::size_t owner, Argument argument,
                            double number, bool before);
/// Why an aggregate can never be known with this window; empty: it can.
std::string window_problem(const Formula& formula, std::string_view name, Kind kind, bool before);
/// From a slope over the window's axis to one per step or second.
double slope_factor(const Formula& formula);
/// Notes the word by which the hook is asked for a statistic that is sent on request.
void request(std::uint16_t field, std::vector<std::string>& requests);
/// Whether every expression finds room on the stack.
bool fits(const Formula& formula, const std::vector<Spoken>& spoken);

}  // namespace tocsin::rules::declared
