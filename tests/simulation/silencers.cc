#include "tests/simulation/silencers.h"

#include <utility>

#include "core/topics.h"
#include "routing/routing.h"

namespace tocsin::simulation {

using namespace std::chrono_literals;

void Silencers::write(const Silenced& one) {
  routing::Silence silence;
  silence.id = one.id;
  silence.matchers = "rule=\"" + one.rule + "\"";
  silence.starts_at = silence.created_at = one.begins;
  silence.ends_at = one.ends;
  silence.updated_at = clock_.now();
  silence.created_by = "ada";
  silence.comment = "simulated";
  core::OutRecord record{core::topic::kRouterControl, "silence/" + one.id,
                         routing::silence_json(silence)};
  record.partition = 0;
  broker_.append(std::move(record));
}

void Silencers::step() {
  if (rate_ == 0 || !random_.chance(rate_)) return;
  if (!silences_.empty() && random_.chance(0.3)) {
    Silenced& one = silences_[random_.index(silences_.size())];
    // By a clock that was put back it may not have begun.
    if (one.ends <= clock_.now() || clock_.now() <= one.begins) return;
    trace_.say("people", "end silence " + one.id);
    one.ends = clock_.now();
    return write(one);
  }
  Silenced& one = silences_.emplace_back();
  one.id = "sil_" + std::to_string(silences_.size());
  one.rule = random_.chance(0.6) ? "all_zero" : "exploding_tensor";
  one.begins = clock_.now();
  one.ends =
      one.begins + (random_.chance(0.6) ? random_.between(core::Duration(2s), core::Duration(40s))
                                        : core::Duration(1h));
  trace_.say("people",
             "silence " + one.rule + " until " + core::to_rfc3339(one.ends) + " (" + one.id + ")");
  write(one);
}

}  // namespace tocsin::simulation
