// What hashes of a run stand for.
#pragma once

#include <cstdint>

#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class Dictionaries {
 public:
  Dictionaries(const EngineOptions& options, EngineStats& stats)
      : options_(options), stats_(stats) {}

  void on_dictionary(const Turn& turn, Run& run, std::uint32_t worker,
                     const core::Dictionary& names);

 private:
  void learn_own(const Turn& turn, Run& run, std::uint32_t worker, const Name& known,
                 const core::NamedEntry& entry);
  /// False: the run has all the names that it may have.
  bool learn(const Turn& turn, Run& run, const core::NamedEntry& entry);

  const EngineOptions& options_;
  EngineStats& stats_;
};

}  // namespace tocsin::rules
