// What hashes of a run stand for.
#pragma once

#include <cstdint>

#include "rules/engine/partition/context.h"

namespace tocsin::rules {

class Dictionaries {
 public:
  explicit Dictionaries(Context& ctx) : ctx_(ctx) {}

  void on_dictionary(Run& run, std::uint32_t worker, const core::Dictionary& names);

 private:
  void learn_own(Run& run, std::uint32_t worker, const Name& known, const core::NamedEntry& entry);
  /// False: the run has all the names that it may have.
  bool learn(Run& run, const core::NamedEntry& entry);

  Context& ctx_;
};

}  // namespace tocsin::rules
