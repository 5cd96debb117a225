// What the rule leak knows so far, for the run card.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/value.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

struct LeakCard {
  using Numbers = std::map<std::string, double>;
  struct Line {
    bool hit = false;
    Numbers numbers;
    template <typename A>
    friend void io(A& a, Line& l) {
      io_all(a, l.hit, l.numbers);
    }
  };
  std::map<std::string, Line> lines;  // by subject

  template <typename A>
  friend void io(A& a, LeakCard& c) {
    io_all(a, c.lines);
  }

  [[nodiscard]] bool empty() const { return lines.empty(); }
  void put(const StepSet& set, const std::string& subject, bool hit, Numbers numbers) {
    lines[subject + (set.mode == core::Mode::eval ? " eval" : "")] = {hit, std::move(numbers)};
  }
  [[nodiscard]] core::ValueMap told() const {
    core::ValueMap out;
    for (const bool hit : {true, false}) {
      core::ValueMap subjects;
      for (const auto& [subject, line] : lines) {
        if (line.hit != hit) continue;
        core::ValueMap numbers;
        for (const auto& [name, number] : line.numbers) numbers.emplace_back(name, number);
        subjects.emplace_back(subject, std::move(numbers));
      }
      if (!subjects.empty()) out.emplace_back(hit ? "hit" : "ok", std::move(subjects));
    }
    return out;
  }
};

}  // namespace tocsin::rules
