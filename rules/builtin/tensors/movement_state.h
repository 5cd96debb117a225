// All that the rule movement knows of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "rules/builtin/shared/pairing_course.h"
#include "rules/builtin/tensors/movement_course.h"
#include "rules/builtin/tensors/movement_pay.h"
#include "rules/contract/archive.h"

namespace tocsin::rules {

/// Parameters of the optimizers, and those without a gradient so far.
struct MovementParameters {
  double trainable = 0;
  double without = 0;  // no gradient at all
  double zero = 0;     // zeros in its place
  double elements = 0;
  double still = 0;  // elements of these
  double at = 0;     // updates when it was said
  template <typename A>
  friend void io(A& a, MovementParameters& p) {
    io_all(a, p.trainable, p.without, p.zero, p.elements, p.still, p.at);
  }
};

/// A tensor that goes less far than others of its role.
struct SlowTensor {
  double share = 1;  // of their median way, at the newest word
  double words = 0;  // in a row below the limit
  template <typename A>
  friend void io(A& a, SlowTensor& t) {
    io_all(a, t.share, t.words);
  }
};

struct MovementState {
  static constexpr double kWords = 3;  // whenever the looks have doubled
  static constexpr std::size_t kMostSlow = 32;

  MovementBounds bounds;  // for what is told at the end
  MovementCourse course;
  MovementParameters parameters;
  PayCourse pay;
  PairingRun run;
  std::map<std::string, PairingCourse> calls;
  std::map<std::string, SlowTensor> slow;
  double compared = 0;  // tensors with others of their role, at the newest word
  double words = 0;
  // How far the gradients of so many updates have one direction: Σ of their squares is what it is divided by.
  double directed = 0;
  double directed_updates = 0;
  std::int64_t since = -1;
  double told = 0;  // updates when the newest sum was told
  double rate = 0;  // the newest
  template <typename A>
  friend void io(A& a, MovementState& s) {
    io_all(a, s.bounds, s.course, s.parameters, s.pay, s.run, s.calls, s.slow, s.compared, s.words,
           s.directed, s.directed_updates, s.since, s.told, s.rate);
  }

  /// A call is no better than one constant answer and will not be, and no other is.
  [[nodiscard]] bool learns_nothing() const {
    bool out = false;
    for (const auto& [name, call] : calls) {
      if (call.knows != 0) return false;
      out = out || call.short_of != 0;
    }
    return out;
  }
  [[nodiscard]] bool unpaid() const { return pay.unpaid != 0 && learns_nothing(); }
  [[nodiscard]] bool stands_still() const { return parameters.zero > 0; }
  [[nodiscard]] bool goes_up() const { return rate < 0 || course.goes_up(bounds); }
  [[nodiscard]] double slow_tensors() const {
    double out = 0;
    for (const auto& [name, one] : slow) out += one.words >= kWords ? 1 : 0;
    return out;
  }
  /// One word of a tensor.
  void take(const std::string& name, double share) {
    const auto [at, fresh] = slow.try_emplace(name);
    if (fresh && slow.size() > kMostSlow) {
      slow.erase(at);
      return;
    }
    at->second.share = share;
    at->second.words = share < bounds.still ? at->second.words + 1 : 0;
  }
};

}  // namespace tocsin::rules
