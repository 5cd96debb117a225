#include "app/recordings/evidence_config.h"

namespace tocsin::app {

void read(config::Reader& in, EvidenceConfig& out) {
  in.optional("keep", out.keep, config::one_of({"none", "first_signs", "all"}),
              "issues whose telemetry is copied: none, those that no other issue of the run "
              "preceded, or all");
  in.optional("dir", out.dir, config::not_empty(),
              "folder of the copies on the machine that judges; created if missing");
  in.optional("lead", out.lead, config::positive(),
              "how long before the first record of the issue's window a copy begins; names of "
              "tensors are sent again every five minutes");
  in.optional("most", out.most, "largest copy; one that would be larger begins later");
  in.optional("per_run", out.per_run, config::between(1U, 10'000U),
              "copies per attempt of a run; further issues are only counted");
  in.optional("keep_for", out.keep_for, config::positive(), "copies older than this are removed");
}

}  // namespace tocsin::app
