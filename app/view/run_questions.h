// The twelve questions that a run is asked, and which rules answer them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace tocsin::app {

struct RunQuestion {
  int number = 0;
  std::string_view name;  // one word
  std::string_view asks;
  std::array<std::string_view, 3> rules;  // types: the first is its own, hits of the others count
  std::string_view lacks;                 // while nothing of it is answered: what has not come
  std::string_view needs;                 // by what it is answered, and how much of it
  bool of_ledger = true;                  // that is in the ledger
};

/// In the order of their numbers.
std::span<const RunQuestion> run_questions() noexcept;
/// Why nobody asks it where these types of rules are configured; empty: it is asked.
std::string unasked(const RunQuestion& question, std::span<const std::string> rule_types);

}  // namespace tocsin::app
